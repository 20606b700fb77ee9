"""How long a fresh process needs to its first result, and what compiling a kernel costs.

    python benchmarks/first_result.py [--rounds 7] [--record benchmarks/results/first_result.jsonl]

Processes are started in turns: bare Python, Python with NumPy, one max pooling of a small image by astride with its kernels on
disk, the same with an empty cache, and by each other library that is installed. Wall time from start to exit, medians. Then,
in one process each and with an empty cache, the first call of every kernel family, less the second: writing, compiling and
loading its kernels.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec

POOL = "import numpy as np, astride; astride.max_pool(np.ones((1, 16, 24, 24), np.float32), kernel=2, backend='cpu')"

OTHERS = {
    "torch": "import torch; torch.nn.functional.max_pool2d(torch.ones(1, 16, 24, 24), 2)",
    "jax": """import jax, numpy as np
f = jax.jit(lambda x: jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"))
f(np.ones((1, 16, 24, 24), np.float32)).block_until_ready()""",
    "cv2": """import cv2, numpy as np
net = cv2.dnn.readNetFromCaffe(np.frombuffer(b'''input: "x" input_dim: 1 input_dim: 16 input_dim: 24 input_dim: 24
layer { name: "y" type: "Pooling" bottom: "x" top: "y" pooling_param { kernel_size: 2 stride: 2 } }''', np.uint8))
net.setInput(np.ones((1, 16, 24, 24), np.float32)); net.forward()""",
    "onnxruntime": """import onnxruntime, numpy as np, sys
onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"]).run(
    None, {"x": np.ones((1, 16, 24, 24), np.float32)})""",
}

FAMILY = """
import sys, time
import numpy as np, astride
from astride import dispatch
op, layout, direction, options = sys.argv[1], sys.argv[2], sys.argv[3], eval(sys.argv[4])
shape = (2, 32, 28, 28) if layout == "channels_first" else (2, 28, 28, 32)
plan = astride.plan(op, shape, layout=layout, **options)
x = np.ones(shape, np.float32)
# The compiler itself has begun, and the driver is there: another operator went before.
dispatch.forward(astride.plan("min_pool", (1, 1, 8, 8), kernel=2), np.ones((1, 1, 8, 8), np.float32), backend="cpu")
y, saved = dispatch.forward(plan, x, save=True, backend="cpu") if direction == "backward" else (None, None)
call = (lambda: dispatch.backward(plan, y, saved)) if saved else (
    lambda: dispatch.forward(plan, x, save=direction == "argmax", backend="cpu"))
times = []
for _ in range(2):
    begin = time.perf_counter()
    call()
    times.append(time.perf_counter() - begin)
print(times[0] - times[1])
"""

FAMILIES = [
    (op, layout, direction, options)
    for op, options in (
        ("max_pool", {"kernel": 3, "stride": 2}),
        ("avg_pool", {"kernel": 3, "stride": 2, "padding": 1}),
        ("lp_pool", {"kernel": 2, "p": 2.0}),
    )
    for layout in ("channels_first", "channels_last")
    for direction in ("forward", "argmax", "backward")
    if direction != "argmax" or op == "max_pool"
]


def onnx_model(folder: str) -> str | None:
    """The same pooling as a file, if the onnx package is here to write one."""
    if find_spec("onnx") is None:
        return None
    import onnx

    make, kind = onnx.helper, onnx.TensorProto.FLOAT
    node = make.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2])
    given, result = make.make_tensor_value_info("x", kind, [1, 16, 24, 24]), make.make_tensor_value_info("y", kind, None)
    model = make.make_model(make.make_graph([node], "pooling", [given], [result]), opset_imports=[make.make_opsetid("", 18)])
    model.ir_version = 10
    path = os.path.join(folder, "pooling.onnx")
    onnx.save(model, path)
    return path


def seconds(text: str, *arguments: str, cache: str) -> float:
    """Wall time of a fresh process."""
    environment = {**os.environ, "ASTRIDE_CACHE_DIR": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as installed packages are: compiled to bytecode
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", text, *arguments], check=True, env=environment, capture_output=True)
    return time.perf_counter() - begin


def processes(rounds: int) -> dict[str, float]:
    """Median seconds of each kind of process."""
    with tempfile.TemporaryDirectory() as folder:
        model, warm = onnx_model(folder), os.path.join(folder, "warm")
        kinds = {"python": "pass", "numpy": "import numpy", "astride": POOL, "astride, empty cache": POOL}
        kinds |= {name: text for name, text in OTHERS.items() if find_spec(name) and (name != "onnxruntime" or model)}
        times: dict[str, list[float]] = {name: [] for name in kinds}
        for turn in range(rounds + 1):
            for name, text in kinds.items():
                cache = os.path.join(folder, f"cold{turn}") if name.endswith("empty cache") else warm
                took = seconds(text, *([model] if name == "onnxruntime" and model else []), cache=cache)
                if turn:  # the first turn fills caches, the system's too
                    times[name].append(took)
        return {name: statistics.median(values) for name, values in times.items()}


def compiling(rounds: int) -> dict[str, float]:
    """Median seconds that the first call of each family costs more than the second, nothing being on disk."""
    found = {}
    for op, layout, direction, options in FAMILIES:
        times = []
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(
                    [sys.executable, "-c", FAMILY, op, layout, direction, repr(options)],
                    check=True, capture_output=True, text=True, env={**os.environ, "ASTRIDE_CACHE_DIR": folder},
                )  # fmt: skip
                times.append(float(done.stdout))
        found[f"{op} {layout} {direction}"] = statistics.median(times)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--record", help="append the result to this file")
    options = parser.parse_args()
    import astride

    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    result = {
        "benchmark": "first_result",
        "process_s": {name: round(value, 3) for name, value in processes(options.rounds).items()},
        "compile_ms": {name: round(value * 1e3, 1) for name, value in compiling(max(options.rounds // 2, 1)).items()},
        "astride": astride.__version__,
        "commit": commit,
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
    }
    print(json.dumps(result, indent=2))
    if options.record:
        with open(options.record, "a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
