"""Moved: see `astride.bench.pooling_cases`."""

from astride.bench.pooling_cases import *  # noqa: F403
