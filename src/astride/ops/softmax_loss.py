"""The negative log-likelihood of a softmax, as one operator."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan.dense import Normalization, SoftmaxLossPlan
from ._run import as_array, run
from .softmax import canonical_axis


def softmax_loss(
    x: Any,
    labels: Any,
    *,
    axis: int = 1,
    ignore_label: int | None = None,
    normalization: str = "valid",
    out: Array | None = None,
    backend: str | None = None,
) -> Array:
    """-log softmax(x)[label], summed over the places that count and divided by the normalization.

    Shapes    x (*outer, classes, *inner), labels integers of outer * inner elements in any shape → y ()
    Numbers   float32, float64 → the same; summed in float64
    Edges     a probability below the smallest normal float32 counts as that; the divisor is at least 1,
              so that a batch whose labels are all ignored has loss 0
    Gradient  (p - [class = label]) * dy / divisor, 0 at ignored places; the probabilities are kept
    Raises    ArrayError: a label that names no class, labels that are no integers or of another number
              ArgumentError: no such axis or normalization, a dtype other than float32 and float64
    Source    Caffe, src/caffe/layers/softmax_loss_layer.cpp; golden layers/softmaxloss_*
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
    )
    return run(plan, x, labels, out=out, backend=backend)[0]
