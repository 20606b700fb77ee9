"""The demonstration: LeNet learns to read scikit-learn's digits, is saved, read back and asked, and shows itself in a picture.

result = run_demo("astride-demo")
result.accuracy, result.picture
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np

from ..caffe import load_caffe, load_solver
from ..data import ArraySource, ShuffledSource
from ..errors import ArgumentError
from ..net import Net
from ..proto import atomic_write
from ..train import Event, IterationDone, NetTested, Solver
from ..train.snapshot import make_folder
from . import console, picture
from .digits import Digits, load_digits, shifted
from .story import Course, Floats, Guesses, Routing, Story, Way, lively

LENET = Path(__file__).resolve().parent / "lenet"
SOURCE = "digits"
WINDOW = 8
SHOWN = 14


@dataclass(frozen=True)
class DemoResult:
    """What came out. `accuracy` is that of the reloaded net on digits never seen; `seconds` is training alone."""

    accuracy: float
    loss: float
    iterations: int
    seconds: float
    images_per_second: float
    trained_on: int
    tested_on: int
    deploy: Path
    model: Path
    state: Path
    picture: Path


def run_demo(
    out_dir: str | PathLike[str] = "astride-demo", *, seed: int = 1, iterations: int | None = None, progress: bool = True
) -> DemoResult:
    """Train the package's LeNet by its own solver file, into `out_dir`: weights, deploy text, `lenet_demo.png`.

    The same seed gives the same net. `iterations` stops earlier than the solver's max_iter. With `progress` a bar, the answers
    and the results are printed; without, nothing is.

    Raises BackendUnavailable: scikit-learn or Matplotlib is missing (`pip install 'astride[demo]'`).
    """
    if iterations is not None and iterations < 1:
        raise ArgumentError(
            "the demonstration trains at least once",
            given={"iterations": iterations},
            required=f"iterations >= 1: {iterations}",
            hint="iterations=400",
        )
    picture.check_installed()
    folder = Path(out_dir)
    digits = load_digits(seed)
    from threadpoolctl import threadpool_limits  # comes with scikit-learn, whose digits are loaded by now

    make_folder(folder)
    # LeNet's products are many and small: on a busy machine BLAS threads wait for each other ten times longer than they
    # compute, and with one thread the same seed gives the same net on any number of cores.
    with threadpool_limits(limits=1, user_api="blas"):
        result, guesses, scores = _run(folder, digits, seed, iterations, progress)
    if progress:
        console.show_guesses(guesses, scores)
        console.show_result(result)
    return result


def _run(folder: Path, digits: Digits, seed: int, iterations: int | None, progress: bool) -> tuple[DemoResult, Guesses, Floats]:
    """Train, save, read back, ask, draw."""
    solver = _solver(digits, folder, seed)
    if iterations is not None:
        solver.settings = replace(solver.settings, max_iter=iterations)
    course = _train(solver, digits, progress)
    written = solver.snapshot()
    deploy = folder / "lenet.prototxt"
    atomic_write(deploy, [(LENET / "lenet.prototxt").read_bytes()])
    # From here on only what was saved is used: the net that answers is the one that came back from the files.
    net = load_caffe(deploy, written.model)
    scores = _scores(net, digits.test_images)
    guesses = Guesses(digits.test_images[:, 0], digits.test_labels, scores.argmax(axis=1))
    story = _story(course, net, digits, guesses, scores)
    picture.draw(story, folder / "lenet_demo.png")
    result = DemoResult(
        accuracy=float((guesses.predictions == guesses.labels).mean()),
        loss=float(course.losses[-1]),
        iterations=solver.iter,
        seconds=course.seconds,
        images_per_second=solver.iter * solver.net.batch_size / course.seconds,
        trained_on=course.trained_on,
        tested_on=course.tested_on,
        deploy=deploy,
        model=written.model,
        state=written.state,
        picture=folder / "lenet_demo.png",
    )
    return result, guesses, scores


def _solver(digits: Digits, folder: Path, seed: int) -> Solver:
    solver = load_solver(
        LENET / "lenet_solver.prototxt",
        sources={SOURCE: ShuffledSource(digits.train_images, digits.train_labels, seed=seed, augment=shifted)},
        test_sources={SOURCE: ArraySource(digits.test_images, digits.test_labels)},
        seed=seed,
        snapshot_prefix=folder / "lenet",
    )
    # The one snapshot is written by run_demo, which needs to know its name.
    solver.settings = replace(solver.settings, snapshot_after_train=False)
    return solver


def _train(solver: Solver, digits: Digits, progress: bool) -> Course:
    losses: list[float] = []
    tests: list[tuple[int, float]] = []
    seconds = 0.0

    def listen(event: Event) -> None:
        nonlocal seconds
        if isinstance(event, IterationDone):
            losses.append(event.loss)
            seconds += event.seconds
        elif isinstance(event, NetTested):
            tests.append((event.iteration, float(event.outputs["accuracy"])))

    solver.add_listener(listen)
    with console.Bar(solver, enabled=progress) as bar:
        solver.add_listener(bar.listen)
        solver.solve()
    if tests[-1][0] != solver.iter:
        solver.test()
    return Course(np.array(losses), tuple(tests), seconds, len(digits.train_labels), len(digits.test_labels))


def _scores(net: Net, images: Floats, batch: int = 50) -> Floats:
    """The probability of each class for each image."""
    parts = [net.forward(data=images[start : start + batch])["prob"] for start in range(0, len(images), batch)]
    return np.concatenate(parts)


def _story(course: Course, net: Net, digits: Digits, guesses: Guesses, scores: Floats) -> Story:
    chosen = _instructive(guesses, scores)
    outputs = net.forward(data=digits.test_images[chosen : chosen + 1])
    maps = {name: net.blobs[name].data[0].copy() for name in ("conv1", "pool1", "conv2", "pool2")}
    way = Way(
        guesses.images[chosen],
        int(guesses.labels[chosen]),
        maps["conv1"],
        maps["pool1"],
        maps["conv2"],
        maps["pool2"],
        outputs["prob"][0],
    )
    routing = _routing(net, way)
    wrong = np.flatnonzero(guesses.predictions != guesses.labels)[:2]
    right = np.flatnonzero(guesses.predictions == guesses.labels)[: SHOWN - len(wrong)]
    shown = np.sort(np.concatenate([wrong, right]))
    kernels = net.params["conv1"][0].data[:, 0].copy()
    return Story(course, kernels, way, routing, Guesses(guesses.images[shown], guesses.labels[shown], guesses.predictions[shown]))


def _instructive(guesses: Guesses, scores: Floats) -> int:
    """A digit read correctly but not without doubt: its scores show a contest and its gradients are not tiny."""
    sure = scores.max(axis=1)
    doubt = np.where(guesses.predictions == guesses.labels, np.abs(sure - 0.9), np.inf)
    return int(doubt.argmin())


def _routing(net: Net, way: Way) -> Routing:
    """Send the gradient of the loss, -log(probability of the right digit), back through the net; keep the liveliest part."""
    top = np.zeros_like(net.blobs["prob"].data)
    top[0, way.label] = -1 / max(float(way.scores[way.label]), 1e-30)
    net.backward(prob=top)
    pooled, routed = net.blobs["pool1"].diff[0].copy(), net.blobs["conv1"].diff[0].copy()
    strength = np.abs(routed)
    places = [
        (float(strength[channel, y : y + WINDOW, x : x + WINDOW].sum()), channel, y, x)
        for channel in lively(way.conv1)
        for y in range(0, routed.shape[1] - WINDOW + 1, 2)
        for x in range(0, routed.shape[2] - WINDOW + 1, 2)
    ]
    _, channel, y, x = max(places)
    part = (channel, slice(y, y + WINDOW), slice(x, x + WINDOW))
    half = (channel, slice(y // 2, (y + WINDOW) // 2), slice(x // 2, (x + WINDOW) // 2))
    return Routing(channel, (y, x), way.conv1[part], way.pool1[half], pooled[half], routed[part])
