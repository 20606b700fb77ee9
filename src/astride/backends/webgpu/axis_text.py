"""WGSL for three axes at a time: `#` stands for the axis's number."""

from __future__ import annotations

AXES = range(3)


def unravel(value: str, letter: str, size: str, rest: str = "") -> str:
    """Lines that take a row-major index of three axes apart; what is left over is named `rest`."""
    sizes = [f"params.{size}{d}" if size.islower() else f"{size}{d}" for d in AXES]
    lines = [f"  let {letter}2 = {value} % {sizes[2]};", f"  let {letter}1 = ({value} / {sizes[2]}) % {sizes[1]};"]
    above = f"({value} / ({sizes[1]} * {sizes[2]}))"
    lines.append(f"  let {letter}0 = {above} % {sizes[0]};")
    if rest:
        lines.append(f"  let {rest} = {above} / {sizes[0]};")
    return "\n".join(lines)


def listed(text: str) -> str:
    """What each axis has, separated by commas."""
    return ", ".join(text.replace("#", str(d)) for d in AXES)


def summed(text: str) -> str:
    """The sum over the axes."""
    return " + ".join(text.replace("#", str(d)) for d in AXES)


def all_of(text: str) -> str:
    """Whether it is true of every axis."""
    return " && ".join(f"({text.replace('#', str(d))})" for d in AXES)


def any_of(text: str) -> str:
    """Whether it is true of some axis."""
    return " || ".join(f"({text.replace('#', str(d))})" for d in AXES)


__all__ = ["AXES", "all_of", "any_of", "listed", "summed", "unravel"]
