"""Pooling's `ceil_mode`, an unmerged change that many forks took over, under the number BVLC later gave `round_mode`."""

from __future__ import annotations

from ._fork import Fork

FORK = Fork(
    "pooling sizes rounded as ceil_mode says",
    ("BVLC/caffe (pull request 3057)", "lutzroeder/netron (tools/caffe-schema.js)"),
    {"PoolingParameter": "13 ceil_mode bool = true"},
)
