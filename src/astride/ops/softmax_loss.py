"""The negative log-likelihood of a softmax, as one operator."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan.dense import SMALLEST_NORMAL, Normalization, SoftmaxLossPlan
from ._run import as_array, run
from .softmax import canonical_axis


def softmax_loss(
    x: Any,
    labels: Any,
    gain: Any = None,
    *,
    axis: int = 1,
    ignore_label: int | None = None,
    normalization: str = "valid",
    floor: float = SMALLEST_NORMAL,
    out: Array | None = None,
    backend: str | None = None,
) -> Array:
    """-log softmax(x)[label], summed over the places that count and divided by the normalization.

    With `gain` a place costs -sum over the classes of gain[label, class] * log softmax(x)[class]: some mistakes more
    than others (the information gain loss). Without, it is as if gain were the identity.

    Shapes    x (*outer, classes, *inner), labels integers of outer * inner elements in any shape,
              gain (classes, classes) or absent → y ()
    Numbers   float32, float64 → the same; summed in float64
    Edges     a probability below `floor`, normally the smallest normal float32, counts as that; the divisor is at
              least 1, so that a batch whose labels are all ignored has loss 0; what x holds at ignored places,
              NaN or not, does not matter
    Gradient  (p - [class = label]) * dy / divisor, 0 at ignored places; the probabilities are kept. With a gain
              (p * sum(gain[label]) - gain[label]) * dy / divisor, below the floor too; gain's own is -log p, gathered by label
    Raises    ArrayError: a label that names no class, labels that are no integers or of another number, a gain that is
              not (classes, classes)
              ArgumentError: no such axis or normalization, a floor not in (0, 1), a dtype other than float32 and float64
    Source    Caffe, src/caffe/layers/softmax_loss_layer.cpp and infogain_loss_layer.cpp (floor 1e-20);
              golden layers/softmaxloss_*, infogain
    Example
    >>> import numpy as np, astride
    >>> float(astride.softmax_loss(np.float64([[0, 0], [0, 0]]), [0, 1]))
    0.6931471805599453
    """
    x, labels = as_array(x, "x"), as_array(labels, "labels")
    if normalization not in list(Normalization):
        raise ArgumentError(
            "there is no such normalization",
            given={"normalization": normalization},
            required=f"one of {', '.join(Normalization)}",
            operator="softmax_loss",
        )
    plan = SoftmaxLossPlan(
        dtype=x.dtype.name,
        axis=canonical_axis(axis, x.ndim, "softmax_loss"),
        ignore_label=ignore_label,
        normalization=Normalization(normalization),
        floor=float(floor),
    )
    return run(plan, x, labels, None if gain is None else as_array(gain, "gain"), out=out, backend=backend)[0]
