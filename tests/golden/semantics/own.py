"""Caffe, PyTorch and the NumPy idioms, through their own signatures in `astride.like`."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.golden.semantics.reading import Call, Planned, array, x_of

import astride
from astride.like import caffe, numpy_loops
from astride.like import pytorch as torch_like
from astride.plan import ExplicitAxis, PoolPlan
from astride.plan.kinds import Divisor, Reduce

IDIOMS = {"max pool, mask full": "mask", "max pool, equal share": "share", "max pool, argmax": "argmax"}
REPEATED = ("kernel_size", "stride", "pad", "dilation")


def call_of(case: dict[str, Any]) -> Call | Planned:
    """One recorded case as a call."""
    return {"Caffe": _caffe, "PyTorch": _pytorch, "NumPy idiom": _numpy}[case["framework"]](case)


def fields_of(text: str) -> dict[str, Any]:
    """`kernel_size:2 pool:MAX bias_term:false` as keywords."""
    read: dict[str, Any] = {}
    for item in text.split():
        key, _, value = item.partition(":")
        read[key] = {"true": True, "false": False}.get(value, int(value) if value.lstrip("-").isdigit() else value)
    return read


def _caffe(case: dict[str, Any]) -> Call:
    fields = fields_of(case["params"])
    if case["op"] == "Pooling":
        if fields.get("pool") == "STOCHASTIC":
            fields.update(phase="TRAIN", seed=0)
        return Call(caffe.pooling, (x_of(case),), fields, asks="return_mask")
    fn = caffe.convolution if case["op"] == "Convolution" else caffe.deconvolution
    bias = () if case.get("bias") is None else (array(case["bias"]),)
    return Call(fn, (x_of(case), array(case["weight"]), *bias), fields)


def _pytorch(case: dict[str, Any]) -> Call | Planned:
    params = {key: value for key, value in case["params"].items() if key != "return_indices"}
    op, x = case["op"], x_of(case)
    if op == "adaptive_avg_pool1d":
        n, out = x.shape[-1], params["output_size"]
        axis = ExplicitAxis(n, tuple(i * n // out for i in range(out)), tuple(-(-(i + 1) * n // out) for i in range(out)))
        return Planned(PoolPlan(dtype="float32", axes=(axis,), reduce=Reduce.AVERAGE, divisor=Divisor.VALID), (x,))
    if op == "Conv1d module":
        return Call(astride.conv, (x, array(case["weight"])), {"rules": "pytorch", **params})
    if op.startswith("max_unpool"):
        return Call(getattr(torch_like, op), (x, np.array(params.pop("indices"))), params)
    if op.startswith("lp_pool"):
        return Call(getattr(torch_like, op), (x, float(params.pop("norm_type"))), params)
    weights = () if case.get("weight") is None else (array(case["weight"]),)
    return Call(getattr(torch_like, op), (x, *weights), params)


def _numpy(case: dict[str, Any]) -> Call:
    return Call(numpy_loops.max_pool, (x_of(case),), {**case["params"], "gradient": IDIOMS[case["op"]]})
