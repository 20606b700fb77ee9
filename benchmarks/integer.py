"""Convolution of quantised numbers beside ONNX Runtime.

    python benchmarks/integer.py --quick                                            a look, in seconds
    python benchmarks/integer.py --run 1 --record benchmarks/results/integer.jsonl   one of three runs
    python benchmarks/integer.py --summary benchmarks/results/integer.jsonl          what all runs say

Cases, and what is measured, are in `astride.bench.integer`; how, in race.py. Medians of the turns, and as spread half the
distance between the quartiles over the median. `ratio` is the rival's median over astride's: above 1 is faster. A row fails
below 0.95.
"""

from __future__ import annotations

from astride.bench.race import main

if __name__ == "__main__":
    main("integer", __doc__)
