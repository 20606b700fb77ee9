"""Pooling beside other libraries, and beside a copy of the same bytes.

    python benchmarks/pooling.py --quick                                            a look, in seconds
    python benchmarks/pooling.py --run 1 --record benchmarks/results/pooling.jsonl   one of three runs
    python benchmarks/pooling.py --summary benchmarks/results/pooling.jsonl          what all runs say
    python benchmarks/pooling.py --fails-of benchmarks/results/pooling.jsonl         the rows that fail, again

Cases, rivals and what is measured are in `astride.bench` (pooling.py, pooling_cases.py, pooling_rivals.py, race.py).
Every row (case, layout, direction, threads) times astride and each rival that has that pooling, in turns, after their answers
were compared; a row whose answers differ names the rival and leaves it out. Medians of the turns, and as spread half the
distance between the quartiles over the median. `ratio` is the best rival's median over astride's: above 1 is faster. A row
fails where it is below 1 by more than both spreads in three of three runs. `copy` is the speed of a copy of as many bytes as
the pooling reads and writes, in the same turns, over astride's.

A run that was interrupted goes on where it stopped, if it is given the same --run, --record and commit.
"""

from __future__ import annotations

from astride.bench.race import main

if __name__ == "__main__":
    main("pooling", __doc__)
