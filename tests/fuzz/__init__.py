"""Hostile files: crafted ones, and as many random ones as there is time for.

    python -m pytest tests/fuzz                            the crafted ones and a short random run
    python -m tests.fuzz --seconds 3600                    an hour of random ones; findings go to --findings DIR

Every input meets the readers in a process that has 1 GiB of address space and five seconds for each.
"""
