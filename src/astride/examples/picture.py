"""The demonstration's picture: how the net learned, what it learned, a digit's way through it, and the way back.

Matplotlib is imported when the picture is drawn, and draws into memory: nothing opens.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BackendUnavailable
from ..proto import atomic_write
from .routing_panel import draw_routing
from .sheet import ASPECT, DARK, GREY, HEIGHT, RING, SMALL, TEXT, WIDTH, section
from .story import Course, Floats, Guesses, Routing, Story, Way, lively

BLUE, ORANGE, GREEN, RED = "#2268b5", "#d9660d", "#1f883d", "#cf222e"
GAP = 0.006


def check_installed() -> None:
    """Raise BackendUnavailable with the install command where Matplotlib is missing: better before the training than after."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise BackendUnavailable(
            "the picture of the demonstration is drawn by Matplotlib, which is not installed",
            given={"package": "matplotlib"},
            hint="pip install 'astride[demo]'",
        ) from error


def draw(story: Story, path: Path) -> None:
    """Write the picture as a PNG."""
    check_installed()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, HEIGHT), dpi=100, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    _heading(figure, story.course)
    _course(figure, story.course)
    _kernels(figure, story.kernels)
    _way(figure, story.way, story.routing)
    draw_routing(figure, story.routing)
    _guesses(figure, story.guesses, story.course)
    _save(canvas, path)


def _save(canvas: Any, path: Path) -> None:
    encoded = io.BytesIO()
    # No date and no version inside: the same seed gives the same file.
    canvas.print_figure(encoded, format="png", facecolor="white", metadata={"Software": None})
    atomic_write(path, [encoded.getbuffer()])


def _heading(figure: Any, course: Course) -> None:
    figure.text(0.04, 0.978, "LeNet learns to read handwritten digits", fontsize=27, weight="bold", color=DARK, va="center")
    figure.text(
        0.04,
        0.9575,
        f"Shown {course.trained_on} digits again and again, it now reads {course.accuracy:.1%} of {course.tested_on} digits it "
        "never saw.",
        fontsize=15,
        color=GREY,
        va="center",
    )


def _course(figure: Any, course: Course) -> None:
    section(
        figure,
        0.04,
        0.932,
        "1  It makes fewer and fewer mistakes",
        "The loss says how wrong the answers are: training makes it small. The accuracy is the share of unseen digits that are "
        "read correctly.",
        columns=80,
    )
    axes = figure.add_axes((0.085, 0.722, 0.42, 0.15))
    window = max(1, len(course.losses) // 40)
    smooth = np.convolve(course.losses, np.ones(window) / window, mode="valid")
    axes.plot(np.arange(1, len(course.losses) + 1), course.losses, color=BLUE, alpha=0.25, linewidth=1)
    axes.plot(np.arange(len(smooth)) + (window + 1) / 2, smooth, color=BLUE, linewidth=2.5)
    axes.set_xlabel("training step (one step = 64 digits)", fontsize=TEXT, color=DARK)
    axes.set_ylabel("loss", fontsize=TEXT, color=BLUE)
    axes.set_ylim(0, None)
    axes.set_xlim(0, len(course.losses))
    right = axes.twinx()
    steps, accuracies = zip(*course.tests)
    right.plot(steps, accuracies, color=ORANGE, linewidth=2, marker="o", markersize=7, clip_on=False)
    right.set_ylim(0, 1)
    right.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    right.set_ylabel("accuracy on unseen digits", fontsize=TEXT, color=ORANGE)
    right.annotate(
        f"{accuracies[-1]:.1%}",
        (steps[-1], accuracies[-1]),
        xytext=(-12, -20),
        textcoords="offset points",
        ha="right",
        fontsize=14,
        weight="bold",
        color=ORANGE,
    )
    for panel, color in ((axes, BLUE), (right, ORANGE)):
        panel.tick_params(axis="y", colors=color, labelsize=SMALL)
        panel.spines[["top"]].set_visible(False)
    axes.tick_params(axis="x", labelsize=SMALL)
    axes.grid(axis="y", color="#e4e7eb")


def _kernels(figure: Any, kernels: Floats) -> None:
    section(
        figure,
        0.60,
        0.932,
        f"2  It found {len(kernels)} small patterns to look for",
        "Convolution slides each 5x5 kernel over the image. Where the image resembles the kernel, the result is large.",
        columns=62,
    )
    limit = float(np.abs(kernels).max())
    for index, kernel in enumerate(kernels):
        row, column = divmod(index, 7)
        axes = figure.add_axes((0.60 + 0.0515 * column, 0.834 - 0.0437 * row, 0.048, 0.048 * ASPECT))
        image = axes.imshow(kernel, cmap="RdBu", vmin=-limit, vmax=limit)
        _bare(axes)
    bar = figure.add_axes((0.60, 0.722, 0.357, 0.007))
    figure.colorbar(image, cax=bar, orientation="horizontal", ticks=[-0.87 * limit, 0, 0.9 * limit])
    bar.set_xticklabels(["wants paper", "does not care", "wants ink"], fontsize=SMALL)
    bar.tick_params(length=0)


def _way(figure: Any, way: Way, routing: Routing) -> None:
    section(
        figure,
        0.04,
        0.684,
        "3  One digit's way through the net",
        "Every convolution asks “where is my pattern?” and answers with a map, bright where it is. Every pooling halves the map "
        "and keeps the largest value of each 2x2 window: what was found stays, its exact place is given up. Six maps of each "
        "kind are shown; section 4 enlarges the framed part.",
    )
    middle, bottom = 0.535, 0.441
    axes = figure.add_axes((0.04, middle - 0.055 * ASPECT, 0.11, 0.11 * ASPECT))
    axes.imshow(way.image, cmap="gray_r", vmin=0, vmax=1)
    _bare(axes)
    _caption(figure, 0.095, bottom, "image", f"28x28, an unseen {way.label}")
    first, second = lively(way.conv1), lively(way.conv2)
    stages = (
        (0.188, 0.066, way.conv1[first], "convolution 1", f"{len(way.conv1)} maps of 24x24"),
        (0.363, 0.055, way.pool1[first], "max pooling 1", f"{len(way.pool1)} maps of 12x12"),
        (0.516, 0.050, way.conv2[second], "convolution 2", f"{len(way.conv2)} maps of 8x8"),
        (0.659, 0.038, way.pool2[second], "max pooling 2", f"{len(way.pool2)} maps of 4x4"),
    )
    for left, size, maps, name, sizes in stages:
        panels = _maps(figure, (left, middle), size, maps)
        if name == "convolution 1" and routing.channel in first:
            _frame(panels[first.index(routing.channel)], routing)
        _caption(figure, left + size + GAP / 2, bottom, name, sizes)
    for x in (0.169, 0.344, 0.4975, 0.6405, 0.7595):
        figure.text(x, middle, "→", fontsize=24, color=GREY, ha="center", va="center")
    _scores(figure, way, middle, bottom)


def _maps(figure: Any, place: tuple[float, float], size: float, maps: Floats) -> list[Any]:
    """Six maps in two columns, their middle at the height of `place`."""
    (left, middle), height = place, size * ASPECT
    panels = []
    for index, values in enumerate(maps):
        column, row = divmod(index, 3)
        y = middle + (1 - row) * (height + GAP * ASPECT) - height / 2
        panel = figure.add_axes((left + column * (size + GAP), y, size, height))
        panel.imshow(values, cmap="magma")
        _bare(panel)
        panels.append(panel)
    return panels


def _frame(panel: Any, routing: Routing) -> None:
    """The part of the map that the next section shows enlarged."""
    from matplotlib.patches import Rectangle

    (top, left), size = routing.corner, len(routing.values)
    panel.add_patch(Rectangle((left - 0.5, top - 0.5), size, size, fill=False, edgecolor=RING, linewidth=2.5))


def _scores(figure: Any, way: Way, middle: float, bottom: float) -> None:
    axes = figure.add_axes((0.805, middle - 0.068, 0.14, 0.148))
    guess = int(np.argmax(way.scores))
    colors = [GREEN if digit == way.label else RED if digit == guess else "#c4ccd4" for digit in range(10)]
    axes.barh(range(10), way.scores, color=colors)
    axes.set_yticks(range(10), [str(digit) for digit in range(10)], fontsize=TEXT)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"], fontsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    _caption(figure, 0.875, bottom, "answer", f"“it is a {guess}”, {way.scores[guess]:.1%} sure")


def _caption(figure: Any, x: float, y: float, name: str, detail: str) -> None:
    figure.text(x, y, name, fontsize=TEXT + 1, weight="bold", color=DARK, ha="center", va="top")
    figure.text(x, y - 0.013, detail, fontsize=SMALL, color=GREY, ha="center", va="top")


def _guesses(figure: Any, guesses: Guesses, course: Course) -> None:
    section(figure, 0.04, 0.108, "5  Digits it never saw, and what it reads", "")
    mistakes = round((1 - course.accuracy) * course.tested_on)
    legend = f"green is right, red is one of its {mistakes} mistakes" if mistakes else "green is right"
    figure.text(0.96, 0.1045, legend, fontsize=TEXT, color=GREY, ha="right", va="top")
    count = len(guesses.images)
    width = 0.92 / count
    for index, (image, label, prediction) in enumerate(zip(guesses.images, guesses.labels, guesses.predictions)):
        axes = figure.add_axes((0.04 + index * width, 0.037, width * 0.9, width * 0.9 * ASPECT))
        axes.imshow(image, cmap="gray_r", vmin=0, vmax=1)
        _bare(axes)
        right = label == prediction
        text = f"{prediction}" if right else f"{prediction}, is {label}"
        x, color = 0.04 + (index + 0.45) * width, GREEN if right else RED
        figure.text(x, 0.031, text, fontsize=15, weight="bold", color=color, ha="center", va="top")


def _bare(axes: Any) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color("#c4ccd4")
