"""Files through a network, one after the other: read, computed, told, drawn. One that cannot be read does not stop the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArrayError, ModelFileError
from . import _saving as saving
from ._errors import report
from ._findings import REGIONS, Finding, Reader
from ._output import note, to_stderr, to_stdout
from ._preparing import Array, Preparation, Size

if TYPE_CHECKING:
    from ..net import Net

MAX_BATCH = 64
"""Images in one pass."""


@dataclass(slots=True)
class Running:
    """A network, how its input `image` is made and its outputs are read, and where they go.

    more      input -> its array, the same for every image
    info      the input that is told each image's height, width and scale, where there is one
    results   what was found, as data
    failed    the files that could not be read, with what was wrong
    """

    net: Net
    image: str
    outputs: Sequence[str]
    prepared: Preparation
    reader: Reader
    save: Path | None = None
    more: Mapping[str, Array] = field(default_factory=dict)
    info: str | None = None
    quiet: bool = False
    results: list[dict[str, Any]] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    _written: set[Path] = field(default_factory=set)

    def run(self, files: Sequence[Path]) -> None:
        """Every file; what was found is printed at once unless `quiet`."""
        from rich.progress import track

        program = self.net.compile(self.outputs)
        blobs = saving.Blobs(self.save) if self.save is not None and self.save.suffix == ".npz" else None
        if any(file.suffix.lower() != ".npy" for file in files):
            taken = self.prepared.recipe.said()
            note(f"images {self.prepared}" + (f" ({taken})" if taken else ""))
        console, progress = to_stdout(), to_stderr()
        hidden = len(files) < 2 or not progress.is_terminal
        for file in track(files, "running", console=progress, transient=True, disable=hidden):
            try:
                inputs, size = self.prepared.load(file)
            except (ModelFileError, ArrayError) as error:
                report(error)
                self.failed.append({"image": str(file), "error": str(error)})
                continue
            self._file(file, inputs, size, program, blobs)
        if blobs is not None and blobs.files:
            blobs.write()
            if not self.quiet:
                console.print(f"wrote {self.save}", markup=False)
        if self.failed and len(files) > 1:
            note(f"{len(self.failed)} of {len(files)} files could not be read")

    def _file(self, file: Path, inputs: Array, size: Size | None, program: Any, blobs: saving.Blobs | None) -> None:
        """What the inputs (N, ...) of a file give, one sample of an image of this size: told, and kept or drawn."""
        console = to_stdout()
        findings: list[Finding] = []
        rows = self._rows
        place = partial(self.prepared.place, size=size)
        for i, sample in enumerate(self._samples(program, inputs, size)):
            found = self.reader.all(sample, place, inputs.shape[2:], size)
            findings = list(found.values())
            which = f" [{i}]" if len(inputs) > 1 else ""
            for blob, finding in found.items():
                shape = list(sample[blob].shape)
                self.results.append({"image": str(file), "index": i, "output": blob, "shape": shape} | finding.to_dict())
                if not self.quiet:
                    console.print(f"{file}{which}  {blob}", style="bold", markup=False)
                    console.print(finding.shown())
            if blobs is not None:
                blobs.add(str(file), sample, [blob for blob in sample if self.reader.detects(blob)], rows)
        if self.save is not None and blobs is None and findings:
            path = None if size is None else saving.draw(self.save, file, findings, self._written)  # no image, no drawing
            note(f"wrote {path}" if path is not None else f"{file}: nothing to draw")
            self.results[-1]["drawn"] = None if path is None else str(path)

    def _samples(self, program: Any, inputs: Array, size: Size | None) -> Iterator[dict[str, Array]]:
        """The program's outputs of each of the inputs (N, ...), run in batches of at most MAX_BATCH, or one by one.

        Tables of detections and regions have the image in their rows, and no axis for it.
        """
        tables = [blob for blob in self.outputs if self.reader.detects(blob)]
        step = 1 if tables or len(program.inputs) > 1 else MAX_BATCH
        more, rows = dict(self.more), self._rows
        if self.info is not None:
            more[self.info] = self.prepared.info(inputs.shape, size)
        for start in range(0, len(inputs), step):
            batch = inputs[start : start + step]
            given = {name: batch if name == self.image else more[name] for name in program.inputs}
            outputs = {blob: np.atleast_1d(values) for blob, values in program(**given).items()}
            for i in range(len(batch)):
                yield {
                    blob: values if blob in rows or (step == 1 and len(values) != 1) else values[i]
                    for blob, values in outputs.items()
                }

    @property
    def _rows(self) -> list[str]:
        """The outputs that have a row a region, of which there are as many as are found."""
        if len(self.net.inputs) == 1:
            return []
        images = self.net.blobs[self.image].shape[0]
        all_regions = set(REGIONS) <= set(self.outputs)
        return [
            blob
            for blob in self.outputs
            if (all_regions and blob in REGIONS)
            or (not self.reader.detects(blob) and self.net.blobs[blob].shape[:1] != (images,))
        ]


__all__ = ["Running"]
