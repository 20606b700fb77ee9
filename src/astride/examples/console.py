"""What the demonstration prints: a bar while it trains, then digits with their answers and the result. By rich."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..train import Event, IterationDone, NetTested, Solver
from .story import Floats, Guesses

if TYPE_CHECKING:
    from .demo import DemoResult

SHADES = " .:-=+*#%@"
ROW = 6


class Bar:
    """A progress bar that listens to a solver: loss, accuracy, images per second, time left."""

    def __init__(self, solver: Solver, *, enabled: bool) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("training"),
            BarColumn(bar_width=16),
            TextColumn("loss {task.fields[loss]}"),
            TextColumn("accuracy {task.fields[accuracy]}"),
            TextColumn("{task.fields[speed]} images/s"),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            disable=not enabled,
        )
        self._batch = solver.net.batch_size * solver.settings.iter_size
        self._seconds = 0.0
        self._task = self._progress.add_task("", total=solver.settings.max_iter, loss="-", accuracy="-", speed="-")

    def listen(self, event: Event) -> None:
        """Show what the solver tells."""
        if isinstance(event, IterationDone):
            self._seconds += event.seconds
            speed = self._batch * (event.iteration + 1) / self._seconds
            self._progress.update(self._task, advance=1, loss=f"{event.smoothed_loss:.3f}", speed=f"{speed:.0f}")
        elif isinstance(event, NetTested):
            self._progress.update(self._task, accuracy=f"{float(event.outputs['accuracy']):.3f}")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if not self._progress.disable:  # rich before 14.3 would print an empty line
            self._progress.stop()


def show_guesses(guesses: Guesses, scores: Floats) -> None:
    """A row of unseen digits in letters, and under each what the reloaded net reads."""
    from rich.columns import Columns
    from rich.console import Console
    from rich.panel import Panel

    cells: list[Any] = []
    for image, label, prediction, score in list(zip(guesses.images, guesses.labels, guesses.predictions, scores))[:ROW]:
        answer = f"{prediction}, {score.max():.0%} sure"
        color = "green" if label == prediction else "red"
        cells.append(Panel(in_letters(image), title=f"a {label}", subtitle=answer, border_style=color, expand=False))
    console = Console()
    console.print("Digits it never saw, read by the net that was saved and loaded again:")
    console.print(Columns(cells))


def in_letters(image: Floats, rows: int = 9, columns: int = 18) -> str:
    """An image as text: darker letters where there is more ink."""
    tall, wide = image.shape
    y = np.arange(rows) * tall // rows
    x = np.arange(columns) * wide // columns
    ink = np.add.reduceat(np.add.reduceat(image, y, axis=0), x, axis=1) / np.outer(np.diff([*y, tall]), np.diff([*x, wide]))
    places = np.clip((ink * len(SHADES)).astype(int), 0, len(SHADES) - 1)
    return "\n".join("".join(SHADES[place] for place in row) for row in places)


def show_result(result: DemoResult) -> None:
    """The figures and the files."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"trained on {result.trained_on} digits in {result.seconds:.1f} s ({result.images_per_second:.0f} images/s), "
        f"tested on {result.tested_on} that it never saw"
    )
    console.print(f"[bold]accuracy {result.accuracy:.3f}[/bold]")
    console.print(f"weights  {result.model}\nnetwork  {result.deploy}\npicture  {result.picture}", markup=False)
