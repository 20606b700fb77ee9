"""Translated lines read back and computed here: what stands there, by functions that only know what a framework's pad, slice
and product do, and the call itself as the spelling reads it."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from astride.explain import Translation
from astride.explain.spelling import read, spelling
from astride.explain.steps import Array, Steps, computed
from astride.explain.wording import _order
from astride.rules._arguments import per_axis

NUMPY_MODES = {"reflect": "reflect", "symmetric": "symmetric", "replicate": "edge", "edge": "edge", "circular": "wrap"}
MULTILINE = ("mps", "darknet")
PADDED = re.compile(r"Padding \w+ 1 1 x x (.*)")
CROPPED = re.compile(r"Crop \w+ 1 1 (\w) \w (.*)")


def by_lines(found: Translation, x: Array, w: Array | None) -> Array:
    """y (N, C, ...) of x (N, C, ...) and w (O, I/g, ...) or (I, O/g, ...), by the lines alone."""
    theirs, rank = spelling(found.target), x.ndim - 2
    assert found.steps is not None
    last = theirs.layout(found.operation.op, found.steps.arguments) == "channels_last"
    state: dict[str, Any] = {"x": np.moveaxis(x, 1, -1) if last else x, "y": None, "w": None, "like": None}
    groups = int(found.operation.arguments.get("groups") or 1)
    if w is not None:
        ours = _order(found.source, found.operation.op, dict(found.operation.arguments), rank)
        state["w"] = np.transpose(w, [canonical(found.operation.op, rank).index(name) for name in ours])
        if groups > 1 and found.source == "openvino":
            state["w"] = state["w"].reshape(groups, -1, *state["w"].shape[1:])
    lines = list(found.lines)
    if found.target in MULTILINE:
        call = [line for line in lines if not line.startswith(("#", "w =", "let s"))]
        lines = [line for line in lines if line not in call]
        lines.insert(next((i for i, line in enumerate(lines) if line.startswith("let s")), len(lines)), "\n".join(call))
    for line in lines:
        run_line(found, line, state, last, groups)
    y: Array = state["y"]
    return np.moveaxis(y, -1, 1) if last else y


def canonical(op: str, rank: int) -> list[str]:
    """The order of the axes of weights here."""
    spatial = {1: ["kW"], 2: ["kH", "kW"], 3: ["kD", "kH", "kW"]}[rank]
    return [*(["O", "I"] if op == "conv" else ["I", "O"]), *spatial]


def run_line(found: Translation, line: str, state: dict[str, Any], last: bool, groups: int) -> None:
    """One line's effect on x, w or y."""
    if line.startswith("# like"):
        state["like"] = [int(n) for n in line.rsplit(" ", 1)[-1].split("x")]
    elif line.startswith("#"):
        return
    elif line.startswith("w ="):
        exec(line, {"np": np}, state)
    elif padded := PADDED.fullmatch(line):
        state["x"] = ncnn_padded(state["x"], padded[1])
    elif cropped := CROPPED.fullmatch(line):
        begin, end = ([int(n) for n in part.split(",")[1:]] for part in cropped[2].split()[:2])
        state[cropped[1]] = state[cropped[1]][(..., *(slice(b, e) for b, e in zip(begin, end)))]
    elif "L.Crop" in line or '"Crop"' in line:
        name = "x" if 'bottom: "x"' in line or line.startswith("x") else "y"
        offsets = [int(n) for n in re.findall(r"offset: (\d+)", line) or re.findall(r"\d+", line.partition("offset=")[2])]
        assert len(offsets) == len(state["like"])
        state[name] = state[name][(..., *(slice(b, b + n) for b, n in zip(offsets, state["like"])))]
    elif scale := re.search(
        r"L\.Power\(y, scale=(.*)\)|scale: (\S+) }|BinaryOp.* 2=(\S+)|linear, dst, (\S+), 0|a: (.*), b: 0", line
    ):
        number = next(group for group in scale.groups() if group).replace("f", "")
        above, _, below = number.strip("()").partition("/")
        state["y"] = state["y"] * (float(above) / float(below or 1))
    elif state["y"] is None and not line.startswith("x ="):
        state["y"] = called(found, line, state, last, groups)
    else:
        text = line.replace("np.float32", "np.float64").replace("x.dtype.min", "np.finfo(np.float64).min")
        exec(text, NAMES[found.target](), state)


def called(found: Translation, line: str, state: dict[str, Any], last: bool, groups: int) -> Array:
    """The call as it is read, computed in the target's layout and weights."""
    x = np.moveaxis(state["x"], -1, 1) if last else state["x"]
    rank, w = x.ndim - 2, state["w"]
    o = read(found.target, line, rank=rank)
    assert o.op == found.operation.op
    arguments = dict(o.arguments)
    if w is not None:
        if w.ndim == rank + 3:  # openvino's and onednn's, with an axis for the group
            assert w.shape[0] == groups and found.target in ("openvino", "onednn")
            w = w.reshape(-1, *w.shape[2:])
        theirs = _order(found.target, o.op, arguments, rank)
        w = np.ascontiguousarray(np.transpose(w, [theirs.index(name) for name in canonical(o.op, rank)]))
        if found.target in ("tensorflow", "tflite", "openvino"):  # whose groups follow from the shapes
            arguments["groups"] = groups
        assert o.kernel is None or per_axis(o.kernel, rank, "kernel") == w.shape[2:]
    kernel = w.shape[2:] if w is not None else per_axis(o.kernel[0] if o.kernel == (o.kernel,) else o.kernel, rank, "kernel")
    y = computed(found.target, replace(o, rank=rank, kernel=kernel), Steps(arguments), np.ascontiguousarray(x), w).y
    return np.moveaxis(y, 1, -1) if last else y


def ncnn_padded(x: Array, text: str) -> Array:
    said = {int(k): float(v) for k, v in (part.split("=") for part in text.split())}
    ids = [(7, 8), (0, 1), (2, 3)][-(x.ndim - 2) :]
    amounts = [(0, 0), (0, 0), *((int(said.get(a, 0)), int(said.get(b, 0))) for a, b in ids)]
    value = said.get(5, 0.0)
    lowest = np.finfo(np.float64).min if value < -3e38 else value  # the arrays here are float64
    return padded(x, amounts, {0: "constant", 1: "edge", 2: "reflect"}[int(said.get(4, 0))], lowest)


def padded(x: Array, amounts: Any, mode: str = "constant", value: float = 0.0, constant_values: float = 0.0) -> Array:
    if mode.lower() == "constant":
        return np.pad(x, amounts, constant_values=value or constant_values)
    return np.pad(x, amounts, mode=NUMPY_MODES.get(mode.lower(), mode))


def pairwise(flat: Any) -> list[tuple[int, int]]:
    return list(zip(flat[::2], flat[1::2]))


def halves(begin: Any, end: Any) -> list[tuple[int, int]]:
    return list(zip(begin, end, strict=True))


def torch_pad(x: Array, amounts: Any, mode: str = "constant", value: float = 0.0) -> Array:
    behind = pairwise(amounts)[::-1]
    return padded(x, [(0, 0)] * (x.ndim - len(behind)) + behind, mode, value)


def sliced(x: Array, begin: Any, end: Any, axes: Any) -> Array:
    places = [slice(None)] * x.ndim
    for b, e, a in zip(begin, end, axes, strict=True):
        places[a] = slice(b, e)
    return x[tuple(places)]


def masked(x: Array, begin: Any, end: Any, step: Any, begin_mask: int, end_mask: int) -> Array:
    assert set(step) == {1}
    return x[
        tuple(
            slice(None if begin_mask >> i & 1 else b, None if end_mask >> i & 1 else e)
            for i, (b, e) in enumerate(zip(begin, end, strict=True))
        )
    ]


def by_index(x: Array, begin: Any, end: Any, end_mask: Any) -> Array:
    return x[tuple(slice(b, None if m else e) for b, e, m in zip(begin, end, end_mask, strict=True))]


def _names(**names: Any) -> Any:
    return lambda: {"np": np, **names}


SPACE = SimpleNamespace
TORCH = SPACE(finfo=np.finfo, tensor=lambda value, dtype: np.asarray(value, dtype))
MX = SPACE(pad=padded, inf=np.inf, array=np.asarray, finfo=np.finfo)
MXNET = SPACE(
    nd=SPACE(
        pad=lambda x, mode, pad_width, constant_value=0.0: padded(x, pairwise(pad_width), mode, constant_value),
        array=np.asarray,
        slice=lambda y, begin, end: y[tuple(slice(b, e) for b, e in zip(begin, end, strict=True))],
    )
)
MB = SPACE(
    pad=lambda x, pad, mode, constant_val=0.0: padded(x, pairwise(pad), mode, constant_val),
    slice_by_index=by_index,
    mul=lambda x, y: x * y,
)
OPS = SPACE(
    pad=lambda x, begin, end, mode, value=0.0: padded(x, halves(begin, end), mode, value),
    slice=lambda y, begin, end, step, axes: sliced(y, begin, end, axes),
    multiply=np.multiply,
)
ONNX = _names(
    Pad=lambda x, pads, value=0.0, mode="constant": padded(x, halves(pads[: x.ndim], pads[x.ndim :]), mode, value),
    Slice=sliced,
    Mul=np.multiply,
)
NAMES: dict[str, Any] = {
    "pytorch": _names(F=SPACE(pad=torch_pad), torch=TORCH),
    "tensorflow": _names(tf=SPACE(pad=padded)),
    "keras": _names(keras=SPACE(ops=SPACE(pad=padded))),
    "jax": _names(jnp=np),
    "onnx": ONNX,
    "onnxruntime": ONNX,
    "mxnet": _names(mx=MXNET),
    "chainer": _names(F=SPACE(pad=padded)),
    "mlx": _names(mx=MX),
    "coreml": _names(mb=MB),
    "openvino": _names(ops=OPS),
    "tflite": _names(
        PAD=padded,
        PADV2=lambda x, pairs, value: padded(x, pairs, "constant", value),
        MIRROR_PAD=padded,
        STRIDED_SLICE=masked,
        MUL=np.multiply,
    ),
    "numpy_loops": _names(),
    "explicit": _names(),
}
"""framework -> the names in its lines: their pads, slices and products on NumPy arrays."""
