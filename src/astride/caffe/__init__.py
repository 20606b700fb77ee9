"""Caffe's networks and solvers: from prototxt and caffemodel to a Net or a Solver, and back.

load.py       load_caffe: a network from its text, with its weights
solver.py     load_solver: a solver with its networks
upgrade.py    the older formats, V0 and V1, brought to the current one (upgrade_v0.py, upgrade_v1.py, journal.py)
comments.py   the comments of an old text carried over into the new one
convert.py    files upgraded, and networks from text to binary and back
state.py      which layers a phase, level and stages include
inputs.py     the older ways to say a network's inputs
translate.py  from a LayerParameter to a layer, one function a type
weights.py    a .caffemodel into a network
export.py     a network to prototxt and .caffemodel
"""

from __future__ import annotations

from .load import build_net, load_caffe
from .solver import load_solver
from .upgrade import upgrade, upgrade_solver
from .weights import load_weights

__all__ = ["build_net", "load_caffe", "load_solver", "load_weights", "upgrade", "upgrade_solver"]
