"""Moved: see `astride.bench.pooling_rivals`."""

from astride.bench.pooling_rivals import *  # noqa: F403
