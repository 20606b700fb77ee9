"""Input, MemoryData and the source of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import ArgumentError, ArrayError
from astride.layers import ArraySource, Blob
from astride.layers.input import Input
from astride.layers.memory_data import MemoryData

DATA, LABELS = np.arange(10.0).reshape(5, 1, 1, 2), np.arange(5)


def test_input_shapes() -> None:
    for shapes, expected in (([(2, 3)], [(2, 3), (2, 3)]), ([(2, 3), (4,)], [(2, 3), (4,)]), ([], [(), ()])):
        tops = [Blob(), Blob()]
        Input(shapes).setup([], tops)
        assert [t.shape for t in tops] == expected
    with pytest.raises(ArgumentError, match="0, 1 or 2 shapes: 3"):
        Input([(1,), (2,), (3,)]).setup([], [Blob(), Blob()])


def test_arrays_go_round() -> None:
    source = ArraySource(DATA, LABELS)
    assert source.shapes() == ((1, 1, 2), ()) and len(source) == 5
    drawn = [source.batch(2)[1].tolist() for _ in range(4)]
    assert drawn == [[0, 1], [2, 3], [4, 0], [1, 2]]
    assert source.batch(12)[1].tolist() == [3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4]
    source.reset(7)
    assert source.batch(1)[1].tolist() == [2]


def test_arrays_of_one_length() -> None:
    for arrays in ((DATA, LABELS[:4]), (np.zeros((0, 2)),), ()):
        with pytest.raises(ArrayError, match="arrays of one length"):
            ArraySource(*arrays)


def test_memory_data_draws() -> None:
    layer = MemoryData(2, [(1, 1, 2), ()])
    tops = [Blob(), Blob()]
    layer.setup([], tops)
    layer.reshape([], tops)
    assert [t.shape for t in tops] == [(2, 1, 1, 2), (2,)]
    with pytest.raises(ArgumentError, match="no data yet"):
        layer.forward([], tops)
    layer.source = ArraySource(DATA, LABELS)
    for expected in ([0, 1], [2, 3], [4, 0]):
        layer.forward([], tops)
        assert tops[1].data.tolist() == expected
        np.testing.assert_array_equal(tops[0].data, DATA[expected])
    layer.reset(1)
    layer.forward([], tops)
    assert tops[1].data.tolist() == [1, 2]


def test_memory_data_refuses() -> None:
    layer = MemoryData(2, [(1, 1, 2), ()])
    with pytest.raises(ArrayError, match="do not fit the data layer"):
        layer.source = ArraySource(DATA.reshape(5, 2), LABELS)
    with pytest.raises(ArgumentError, match="tops == 2: 1"):
        layer.setup([], [Blob()])
    with pytest.raises(ArgumentError, match="count from 1"):
        MemoryData(0, [(1, 1, 2), ()])

    class Liar(ArraySource):
        def batch(self, size: int):  # type: ignore[no-untyped-def]
            return tuple(a[:1] for a in super().batch(size))

    layer.source = Liar(DATA, LABELS)
    tops = [Blob(), Blob()]
    layer.reshape([], tops)
    with pytest.raises(ArrayError, match="another shape than it promised"):
        layer.forward([], tops)
