"""One training step of LeNet on the reference's im2col rung, beside the matrix products it cannot do without.

    python benchmarks/lenet_step.py [--batch 64] [--rounds 30] [--record benchmarks/results/lenet_step.jsonl]

Forward and backward of the packaged network are timed on random digits, interleaved with the bare products (the same
shapes, as `numpy.matmul`) of its two convolutions and two inner products. Medians, one BLAS thread.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from importlib.resources import files

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

import numpy as np

import astride

# (rows, inner, columns) of each layer's product for one image; backward needs two more of the same size.
PRODUCTS = {"conv1": (20, 25, 576), "conv2": (50, 500, 64), "ip1": (1, 800, 500), "ip2": (1, 500, 10)}


def products(batch: int) -> Callable[[], None]:
    """Every matrix product of a step, the batch's positions together; conv1 computes no gradient of the images."""
    rng = np.random.default_rng(0)
    work = []
    for name, (rows, inner, columns) in PRODUCTS.items():
        if name.startswith("ip"):
            rows, columns = columns, 1
        a = rng.normal(size=(rows, inner)).astype(np.float32)
        b = rng.normal(size=(inner, columns * batch)).astype(np.float32)
        dy = rng.normal(size=(rows, columns * batch)).astype(np.float32)
        work.append((a, b, dy, name != "conv1"))

    def run() -> None:
        for a, b, dy, down in work:
            a @ b
            dy @ b.T
            if down:
                a.T @ dy

    return run


def step(batch: int) -> Callable[[], None]:
    """A forward and backward pass of the training network."""
    text = (files("astride.examples") / "lenet" / "lenet_train_test.prototxt").read_text()
    net = astride.load_caffe(text.replace("batch_size: 64", f"batch_size: {batch}"), phase="TRAIN", seed=1)
    rng = np.random.default_rng(1)
    net.set_input_arrays(rng.random((batch, 1, 28, 28), np.float32), rng.integers(0, 10, batch).astype(np.float32))

    def run() -> None:
        net.clear_param_diffs()
        net.forward()
        net.backward()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--record", help="append the result to this file")
    options = parser.parse_args()

    runs = {"step": step(options.batch), "products": products(options.batch)}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(options.rounds + 3):
        for name, run in runs.items():
            begin = time.perf_counter()
            run()
            if turn >= 3:
                times[name].append((time.perf_counter() - begin) * 1e3)
    median = {name: statistics.median(values) for name, values in times.items()}
    result = {
        "benchmark": "lenet_step",
        "batch": options.batch,
        "step_ms": round(median["step"], 2),
        "products_ms": round(median["products"], 2),
        "ratio": round(median["step"] / median["products"], 2),
        "images_per_s": round(options.batch / median["step"] * 1e3),
        "numpy": np.__version__,
        "astride": astride.__version__,
        "commit": subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip(),
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
    }
    print(json.dumps(result, indent=2))
    if options.record:
        with open(options.record, "a") as file:
            file.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
