"""What a network costs before it has run once: with an empty cache of kernels, and with a warm one.

    python benchmarks/first_network.py [NET.prototxt] [--record benchmarks/results/first_network.jsonl]

In a process of its own, the network runs forward twice on one thread. What the first run takes more than the second is set-up:
plans, schedules, packing, and writing, compiling and loading kernels, of convolutions and of everything else. GoogLeNet, with
its 57 convolutions, by default.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

CHILD = """
import sys, time
import astride
net = astride.load_caffe(sys.argv[1], seed=1)
times = []
with astride.use(threads=1):
    for _ in range(2):
        begin = time.perf_counter()
        net.forward()
        times.append(time.perf_counter() - begin)
print(sum(layer.type == "Convolution" for layer in net.layers), *times)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(__file__).resolve().parents[1] / "examples" / "zoo" / "googlenet.prototxt"
    parser.add_argument("net", nargs="?", type=Path, default=default)
    parser.add_argument("--record", type=Path, help="append a line of JSON to this file")
    options = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    row = {"benchmark": "first_network", "net": options.net.name, "commit": commit, "machine": platform.machine()}
    with tempfile.TemporaryDirectory() as folder:
        for cache in ("empty", "warm"):
            done = subprocess.run(
                [sys.executable, "-c", CHILD, str(options.net)],
                env={**os.environ, "ASTRIDE_CACHE_DIR": folder},
                capture_output=True,
                text=True,
                check=True,
            )
            count, first, second = done.stdout.split()
            row |= {"convolutions": int(count), f"setup_{cache}_s": round(float(first) - float(second), 3)}
            row["forward_s"] = round(float(second), 4)
    print(json.dumps(row, indent=2))
    if options.record:
        with open(options.record, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
