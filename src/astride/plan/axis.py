"""One spatial axis of a window: pure integer arithmetic, checked when made.

Along a strided axis window `i` has taps `i*stride - pad_lo + j*dilation` for `j < kernel`, counted in the
input after `input_dilation - 1` zeros between pixels. Everything a framework decides about sizes, rounding and
where padding goes has become integers here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from ..errors import ArgumentError

COUNT_MAX = 2**61 - 1
"""Positions are sums of an axis's extents, at most three, so that within this limit none leaves int64; an axis beyond it is
refused rather than wrapped. A backend that counts in fewer bits declines what does not fit them."""


@dataclass(frozen=True, slots=True)
class StridedAxis:
    """An axis on which windows advance by `stride`. Pads may be negative, which crops."""

    size: int
    kernel: int
    stride: int = 1
    dilation: int = 1
    pad_lo: int = 0
    pad_hi: int = 0
    out: int = 1
    input_dilation: int = 1

    def __post_init__(self) -> None:
        for name in ("kernel", "stride", "dilation", "input_dilation"):
            _at_least(self, name, 1)
        for name in ("size", "out"):
            _at_least(self, name, 0)
        self._fits_int64()
        free = self.stretched + self.pad_lo + self.pad_hi - self.reach
        floor, ceil = max(free // self.stride + 1, 0), max(-(-free // self.stride) + 1, 0)
        # a rule may drop windows that start behind the input, which pads of a kernel or more make room for
        before = max(-(-(self.stretched + self.pad_lo) // self.stride), 0)
        if not min(floor, before) <= self.out <= ceil:
            raise ArgumentError(
                "the output size does not follow from the axis",
                given={"axis": self},
                required=f"{min(floor, before)} <= out <= {ceil}: {self.out}",
                hint=f"out={floor}",
            )

    def _fits_int64(self) -> None:
        padded = self.stretched + abs(self.pad_lo) + abs(self.pad_hi)
        for what, value, hint in (
            ("(kernel - 1) * dilation + 1", self.reach, "a smaller dilation"),
            ("size + |pad_lo| + |pad_hi|", padded, "less padding"),
            ("stride", self.stride, f"stride={max(min(padded, COUNT_MAX), 1)}"),
        ):
            if value > COUNT_MAX:
                raise ArgumentError(
                    "the axis counts further than 2^61 - 1",
                    given={"axis": self},
                    required=f"{what} <= 2^61 - 1: {value}",
                    hint=hint,
                )

    @property
    def reach(self) -> int:
        """The window's extent in input pixels, holes included: (kernel - 1) * dilation + 1."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def stretched(self) -> int:
        """The input's size after input_dilation - 1 zeros between its pixels."""
        return (self.size - 1) * self.input_dilation + 1 if self.size else 0

    def start(self, window: int) -> int:
        """The position of the first tap; negative inside the padding."""
        return window * self.stride - self.pad_lo

    def taps(self, window: int) -> range:
        """Positions of all taps of one window, in the stretched input; those outside [0, stretched) read the edge."""
        first = self.start(window)
        return range(first, first + self.reach, self.dilation)

    @property
    def overhang(self) -> int:
        """How far the last window reaches past the declared padding (ceil rounding); 0 if it does not."""
        if not self.out:
            return 0
        return max(self.start(self.out - 1) + self.reach - self.stretched - self.pad_hi, 0)

    def flipped(self) -> Self:
        """The axis on which a transposed convolution over this one is a convolution: the flip identity."""
        return type(self)(
            size=self.out,
            kernel=self.kernel,
            stride=1,
            dilation=self.dilation,
            pad_lo=self.reach - 1 - self.pad_lo,
            pad_hi=self.size + self.pad_lo - ((self.out - 1) * self.stride + 1 if self.out else 0),
            out=self.size,
            input_dilation=self.stride,
        )

    def __str__(self) -> str:
        parts = [
            f"{self.size} -> {self.out}",
            f"kernel {self.kernel}",
            f"stride {self.stride}",
            f"pads {self.pad_lo},{self.pad_hi}",
        ]
        if self.dilation > 1:
            parts.append(f"dilation {self.dilation}")
        if self.input_dilation > 1:
            parts.append(f"input dilation {self.input_dilation}")
        if self.overhang:
            parts.append(f"overhang {self.overhang}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class ExplicitAxis:
    """An axis on which every window has its own [start, end): adaptive, fractional and pyramid pooling."""

    size: int
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def __post_init__(self) -> None:
        _at_least(self, "size", 0)
        if len(self.starts) != len(self.ends):
            raise ArgumentError(
                "starts and ends differ in number",
                given={"starts": self.starts, "ends": self.ends},
                required=f"len(starts) == len(ends): {len(self.starts)} == {len(self.ends)}",
            )
        for start, end in zip(self.starts, self.ends, strict=True):
            if not 0 <= start <= end <= self.size:
                raise ArgumentError(
                    "a window leaves the input",
                    given={"start": start, "end": end},
                    required=f"0 <= start <= end <= size: 0 <= {start} <= {end} <= {self.size}",
                )

    @property
    def out(self) -> int:
        return len(self.starts)

    @property
    def kernel(self) -> int:
        """Taps of the longest window."""
        return max((end - start for start, end in zip(self.starts, self.ends, strict=True)), default=0)

    @property
    def stretched(self) -> int:
        return self.size

    def start(self, window: int) -> int:
        return self.starts[window]

    def taps(self, window: int) -> range:
        return range(self.starts[window], self.ends[window])

    def __str__(self) -> str:
        return f"{self.size} -> {self.out}, windows " + " ".join(
            f"[{a},{b})" for a, b in zip(self.starts, self.ends, strict=True)
        )


Axis = StridedAxis | ExplicitAxis


def axis_to_dict(axis: Axis) -> dict[str, Any]:
    """Plain data that `axis_from_dict` turns back into an equal axis."""
    if isinstance(axis, StridedAxis):
        return {name: getattr(axis, name) for name in StridedAxis.__dataclass_fields__}
    return {"size": axis.size, "starts": list(axis.starts), "ends": list(axis.ends)}


def axis_from_dict(data: dict[str, Any]) -> Axis:
    """The axis written by `axis_to_dict`. Raises ArgumentError for anything else."""
    try:
        if "starts" in data:
            return ExplicitAxis(size=data["size"], starts=tuple(data["starts"]), ends=tuple(data["ends"]))
        return StridedAxis(**data)
    except (TypeError, KeyError) as error:
        raise ArgumentError("this is not a saved axis", given={"axis": data}, because=str(error)) from error


def _at_least(axis: Any, name: str, minimum: int) -> None:
    value = getattr(axis, name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentError(f"{name} is not a whole number", given={name: value}, hint=f"{name}={minimum}")
    if value < minimum:
        raise ArgumentError(
            f"{name} is below {minimum}", given={name: value}, required=f"{name} >= {minimum}: {value}", hint=f"{name}={minimum}"
        )
