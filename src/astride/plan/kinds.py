"""The closed vocabularies of a plan. Past the rules border there are no free strings, only these.

Section numbers refer to the semantics survey summarised in docs/rules/.
"""

from __future__ import annotations

from enum import StrEnum


class Layout(StrEnum):
    """Where the channels are: (N, C, *size) or (N, *size, C)."""

    CHANNELS_FIRST = "channels_first"
    CHANNELS_LAST = "channels_last"


class Reduce(StrEnum):
    """What a pooling window becomes."""

    MAX = "max"
    MIN = "min"
    AVERAGE = "average"
    LP = "lp"
    STOCHASTIC = "stochastic"  # training: one tap drawn in proportion to its activation
    STOCHASTIC_MEAN = "stochastic_mean"  # test time: activations weighted by themselves, sum x^2 / sum x


class Start(StrEnum):
    """What the running extreme of a max (min mirrored) holds before the first tap."""

    INFINITY = "infinity"  # -inf for max, +inf for min; an integer type's own limit
    FINITE = "finite"  # the lowest (highest) finite value, C's -FLT_MAX: -inf and NaN never beat it
    FIRST_TAP = "first_tap"  # the first tap inside the input


class Nan(StrEnum):
    """What a NaN does to a max or min."""

    COMPARED = "compared"  # only `x > best` decides, so a NaN never replaces; one that started there stays
    PROPAGATED = "propagated"  # a window with a NaN gives NaN


class Tie(StrEnum):
    """Which taps of a max or min window the gradient returns to."""

    FIRST = "first"  # first extreme in row-major order; NaN never chosen unless it started (Start.FIRST_TAP)
    LAST = "last"  # last extreme
    FIRST_NAN = "first_nan"  # the first NaN if there is one, else the first extreme (NumPy's argmax)
    LAST_NAN = "last_nan"  # the last NaN if there is one, else the first extreme (PyTorch)
    LEADING_NAN = "leading_nan"  # scan from the first tap with `>`: a NaN there keeps it (TensorFlow 2-D)
    AFTER_NAN = "after_nan"  # the pick moves on unless `pick >= x`: first extreme after the last NaN (JAX)
    ALL_FULL = "all_full"  # every tap equal to the extreme, each the whole gradient (NumPy mask idiom)
    EQUAL_SHARE = "equal_share"  # every tap equal to the extreme, the gradient divided among them
    RECORDED = "recorded"  # every tap equal to the *recorded output*, which may be a start value no tap has
    NEAR = "near"  # every tap less than 1e-5 from the recorded output, never an infinite one (TensorFlow 3-D)

    @property
    def picks_one(self) -> bool:
        """True where one tap wins, so that its offset is all backward needs."""
        return self not in (Tie.ALL_FULL, Tie.EQUAL_SHARE, Tie.RECORDED, Tie.NEAR)


NEARNESS = 1e-5
"""How far from the output a tap may be by Tie.NEAR."""


class Unpicked(StrEnum):
    """Where the gradient of a window goes in which no tap beat the start value."""

    NOWHERE = "nowhere"  # index -1, gradient dropped (Caffe)
    FIRST_TAP = "first_tap"  # the first tap inside the input (PyTorch: its index starts there)
    ORIGIN = "origin"  # as NOWHERE, but the index is that of the plane's first pixel (OpenVINO)


class Divisor(StrEnum):
    """What an average divides by; per axis, then multiplied."""

    KERNEL = "kernel"  # the kernel's taps, always
    VALID = "valid"  # taps inside the input
    PADDED = "padded"  # taps inside the input and its padding; the overhang of ceil rounding is not counted
    CAFFE = "caffe"  # min(start + kernel, size + pad_lo) - start; may be 0 or negative
    OVERRIDE = "override"  # a constant


class Rounding(StrEnum):
    """What an average of integers becomes where the division leaves a rest."""

    TRUNCATE = "truncate"  # toward zero (PyTorch)
    HALF_AWAY = "half_away"  # the nearest, halves away from zero (TFLite)


class Empty(StrEnum):
    """What a window gives that has no tap inside the input."""

    START = "start"  # max, min: the start value (its type limit for FIRST_TAP)
    QUOTIENT = "quotient"  # average: 0 / divisor as floating point has it: NaN for 0, -0.0 for a negative one
    ZERO = "zero"
    NAN = "nan"


class Edge(StrEnum):
    """What a tap outside the input reads."""

    SKIP = "skip"  # nothing: it takes no part (for convolution this is zero padding)
    CONSTANT = "constant"  # `edge_value`, which takes part
    CLAMP = "clamp"  # the nearest pixel
    MIRROR = "mirror"  # reflected about the edge pixel's centre, which is not repeated
    MIRROR_EDGE = "mirror_edge"  # reflected about the edge itself, so the edge pixel repeats
    WRAP = "wrap"  # the other side


class LpForm(StrEnum):
    """How the powers of a signed input enter an Lp window."""

    ABSOLUTE = "absolute"  # (sum |x|^p)^(1/p)
    SIGNED = "signed"  # (sum x^p)^(1/p) as floating point has it: a negative sum gives NaN unless p = 1 (PyTorch)
    SIGNED_ROOT = "signed_root"  # as SIGNED, with the real root of a negative sum (MXNet)


class LpScale(StrEnum):
    """What the sum of powers is multiplied by before the root."""

    SUM = "sum"  # 1
    MEAN = "mean"  # 1 / taps inside the input (TFLite)
    RESCALED = "rescaled"  # kernel taps / taps inside the input: partial windows count as whole (PyTorch)


class ZeroWindow(StrEnum):
    """The gradient of an Lp window whose result is 0."""

    ZERO = "zero"  # 0 (PyTorch, MXNet)
    FORMULA = "formula"  # (x/y)^(p-1) as written: 0/0 = NaN (the other reading of Apple's header), 1 for a signed sum (MXNet)


class Direction(StrEnum):
    """Convolution gathers (`y[i] = sum x[i*s - p + j*d] w[j]`), a transposed one scatters by the same relation."""

    FORWARD = "forward"
    TRANSPOSED = "transposed"


class IndexBase(StrEnum):
    """What a framework's index of a maximum counts from."""

    PLANE = "plane"  # row-major in the unpadded plane of one channel
    TENSOR = "tensor"  # row-major over the whole input
    TENSOR_COLUMN = "tensor_column"  # planes in order, each column-major: the first spatial axis fastest (ONNX's storage_order)
    IMAGE = "image"  # row-major in one image, its channels included, as the input lies (TensorFlow's argmax)
    WINDOW = "window"  # row-major inside the window, padding counted
