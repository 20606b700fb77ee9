"""The demonstration: a short run of it, the files it leaves, and that its picture says what is true."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from astride.caffe import load_caffe, load_solver
from astride.errors import ArgumentError, BackendUnavailable
from astride.examples import demo, digits, picture
from astride.examples.console import in_letters
from astride.examples.demo import LENET, DemoResult, run_demo
from astride.examples.routing_panel import _unit, _winners
from astride.examples.story import Story

pytest.importorskip("sklearn", reason="the digits are scikit-learn's: pip install 'astride[demo]'")
pytest.importorskip("matplotlib", reason="the picture is Matplotlib's: pip install 'astride[demo]'")


@dataclass(frozen=True)
class Short:
    """A run of ten iterations without progress: what it returned, drew from, and printed."""

    result: DemoResult
    story: Story
    printed: str


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Short:
    drawn: list[Story] = []
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    original = picture.draw
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), redirect_stderr(printed):
        patch.setattr(picture, "draw", lambda story, path: (drawn.append(story), original(story, path)))
        result = run_demo(folder, iterations=10, progress=False)
    return Short(result, drawn[0], printed.getvalue())


def test_it_leaves_its_files(short: Short) -> None:
    result = short.result
    files = {path.name for path in result.picture.parent.iterdir()}
    assert files == {"lenet.prototxt", "lenet_iter_10.caffemodel", "lenet_iter_10.solverstate", "lenet_demo.png"}
    with Image.open(result.picture) as opened:
        assert opened.format == "PNG" and opened.width >= 1200 and opened.height >= 1200
        shades = opened.convert("L").histogram()
    assert sum(shades[:128]) > 50_000 and sum(shades[250:]) > 500_000, "neither empty nor black"


def test_its_numbers_are_those_of_the_files(short: Short) -> None:
    result, story = short.result, short.story
    held_out = digits.load_digits(1)
    answers = load_caffe(result.deploy, result.model).forward(data=held_out.test_images)["prob"].argmax(axis=1)
    assert result.accuracy == pytest.approx((answers == held_out.test_labels).mean())
    assert result.accuracy == pytest.approx(story.course.accuracy), "the reloaded net answers as the trained one"
    assert (result.iterations, result.trained_on, result.tested_on) == (10, 1347, 450)
    assert result.loss == story.course.losses[-1] < story.course.losses[0]
    assert [step for step, _ in story.course.tests] == [0, 10]


def test_the_routing_it_shows_is_max_poolings(short: Short) -> None:
    """Each window's gradient lies at its largest value and nowhere else, and is the pooled value's."""
    routing = short.story.routing
    expected = np.zeros_like(routing.gradient)
    for y, x in _winners(routing.values):
        assert routing.values[y, x] == routing.pooled[y // 2, x // 2]
        expected[y, x] = routing.pooled_gradient[y // 2, x // 2]
    assert (routing.gradient == expected).all() and np.abs(expected).max() > 0


def test_the_way_it_shows_has_the_sizes_it_names(short: Short) -> None:
    way = short.story.way
    shapes = [maps.shape for maps in (way.conv1, way.pool1, way.conv2, way.pool2)]
    assert shapes == [(20, 24, 24), (20, 12, 12), (50, 8, 8), (50, 4, 4)]
    assert way.scores.sum() == pytest.approx(1, rel=1e-5)
    top, left = short.story.routing.corner
    assert (way.conv1[short.story.routing.channel, top : top + 8, left : left + 8] == short.story.routing.values).all()


def test_the_same_seed_gives_the_same_net(short: Short, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = run_demo(tmp_path, iterations=10, progress=True)
    assert again.model.read_bytes() == short.result.model.read_bytes()
    printed = capsys.readouterr().out
    assert f"accuracy {again.accuracy:.3f}" in printed and "images/s" in printed and "loss" in printed


def test_without_progress_nothing_is_printed(short: Short) -> None:
    assert short.printed == ""


@pytest.mark.slow
def test_the_whole_of_it_reads_97_of_100_unseen_digits(tmp_path: Path) -> None:
    result = run_demo(tmp_path, progress=False)
    assert result.accuracy >= 0.97 and result.iterations == 400


def test_the_packages_files_are_what_runs() -> None:
    solver = load_solver(LENET / "lenet_solver.prototxt")
    deploy = load_caffe(LENET / "lenet.prototxt")
    assert solver.settings.max_iter == 400 and solver.settings.test_iter == (digits.HELD_OUT // 50,)
    for net in (solver.net, solver.test_nets[0], deploy):
        sizes = [net.blobs[name].shape[1:] for name in ("data", "conv1", "pool1", "conv2", "pool2", "ip2")]
        assert sizes == [(1, 28, 28), (20, 24, 24), (20, 12, 12), (50, 8, 8), (50, 4, 4), (10,)]
    shapes = [parameter.shape for parameter in solver.net.learnable]
    assert shapes == [parameter.shape for parameter in deploy.learnable]


def test_the_digits_are_split_once_and_for_all() -> None:
    one, two, other = digits.load_digits(1), digits.load_digits(1), digits.load_digits(2)
    assert (one.test_images == two.test_images).all() and not (one.test_images == other.test_images).all()
    assert len(one.test_labels) == 450 and len(one.train_labels) == 1347
    assert one.train_images.shape[1:] == (1, 28, 28) and one.train_images.dtype == np.float32
    assert one.train_images.min() == 0 and one.train_images.max() == 1
    trained = {image.tobytes() for image in one.train_images}
    assert not any(image.tobytes() in trained for image in one.test_images), "a held-out digit was trained on"


def test_a_shift_moves_ink_and_loses_none() -> None:
    images = np.zeros((50, 1, 28, 28), np.float32)
    images[:, 0, 10:14, 10:14] = 1
    moved = digits.shifted(images, np.random.default_rng(0))
    assert (moved.sum(axis=(1, 2, 3)) == 16).all()
    assert len({image.tobytes() for image in moved}) == 9, "up to one pixel along both axes"


@pytest.mark.parametrize(("module", "name"), [("sklearn.datasets", "scikit-learn"), ("matplotlib.figure", "matplotlib")])
def test_a_missing_package_is_named_with_its_command(
    module: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(BackendUnavailable, match="not installed") as caught:
        run_demo(tmp_path / "out", progress=False)
    assert caught.value.given == {"package": name} and caught.value.hint == "pip install 'astride[demo]'"
    assert not (tmp_path / "out").exists()


def test_no_iterations_no_demonstration(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="iterations >= 1: 0"):
        run_demo(tmp_path, iterations=0)


def test_the_instructive_digit_is_read_right_and_with_some_doubt() -> None:
    scores = np.array([[0.99, 0.01], [0.12, 0.88], [0.9, 0.1]], np.float32)
    guesses = demo.Guesses(np.zeros((3, 2, 2)), np.array([0, 1, 1]), scores.argmax(axis=1))
    assert demo._instructive(guesses, scores) == 1


@pytest.mark.parametrize(
    ("largest", "unit"), [(5.0, "ones"), (0.5, "tenths"), (0.02, "hundredths"), (3e-5, "hundred-thousandths"), (0.0, "ones")]
)
def test_gradients_are_written_in_a_fitting_unit(largest: float, unit: str) -> None:
    assert _unit(np.array([largest, -largest / 2]))[1] == unit


def test_letters_are_darker_where_there_is_ink() -> None:
    image = np.zeros((28, 28))
    image[14:] = 1
    lines = in_letters(image, rows=4, columns=6).split("\n")
    assert lines == [" " * 6, " " * 6, "@" * 6, "@" * 6]
