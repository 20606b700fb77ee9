"""Convolution beside other libraries, and beside the most this machine can multiply and add.

    python benchmarks/convolution.py --quick                                                a look, in a minute
    python benchmarks/convolution.py --run 1 --record benchmarks/results/convolution.jsonl   one of three runs
    python benchmarks/convolution.py --summary benchmarks/results/convolution.jsonl          what all runs say
    python benchmarks/convolution.py --fails-of benchmarks/results/convolution.jsonl         the rows below 0.95 again

Cases, rivals and what is measured are in `astride.bench` (convolution.py, convolution_cases.py, convolution_rivals.py, race.py).
Directions are "forward", "data" and "weights": y, the gradient of x and that of w. Medians of the turns, and as spread half the
distance between the quartiles over the median. `ratio` is the best rival's median over astride's: above 1 is faster. A row
fails below 0.95. `peak` is the share of the multiplications and additions that this machine does at most, measured with each row.
"""

from __future__ import annotations

from astride.bench.race import main

if __name__ == "__main__":
    main("convolution", __doc__)
