"""Blobs: live views, kept capacity, shared memory, Caffe's limits."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import ArgumentError
from astride.layers import LAYERS, Blob, layer_class


def test_views_are_live() -> None:
    blob = Blob((2, 3))
    view = blob.data
    view[...] = 5
    assert (blob.data == 5).all() and blob.data.dtype == np.float32
    assert not blob.has_diff
    blob.diff[0, 0] = 1
    assert blob.has_diff and blob.diff.sum() == 1


def test_reshape_keeps_capacity() -> None:
    blob = Blob((2, 3))
    whole = blob.data
    whole[...] = np.arange(6).reshape(2, 3)
    blob.reshape(4)
    assert blob.data.tolist() == [0, 1, 2, 3] and np.shares_memory(blob.data, whole)
    blob.reshape((2, 3))
    assert blob.data.tolist() == [[0, 1, 2], [3, 4, 5]]
    blob.reshape(7)
    assert not np.shares_memory(blob.data, whole) and whole.shape == (2, 3)


def test_a_view_outlives_its_blob() -> None:
    view = Blob((3,)).data
    view[...] = 2
    assert view.sum() == 6


def test_shared_memory() -> None:
    one, other = Blob((2, 3)), Blob((6,))
    other.share(one, data=True, diff=True)
    one.data[...] = 4
    one.diff[...] = 3
    assert other.data.sum() == 24 and other.diff.sum() == 18
    assert one.memory() == other.memory()


def test_nothing_is_allocated_before_it_is_looked_at() -> None:
    assert Blob((2**15, 2**15)).count == 2**30


def test_sizes() -> None:
    assert (Blob().shape, Blob().count) == ((), 1)
    blob = Blob((5, 4, 3, 2))
    assert (blob.num, blob.channels, blob.height, blob.width, blob.count) == (5, 4, 3, 2, 120)
    assert Blob((7,)).width == 1
    with pytest.raises(ArgumentError, match="more than four axes"):
        _ = Blob((1, 1, 1, 1, 1)).num


@pytest.mark.parametrize("shape", [(-1,), (2**16, 2**16), (1,) * 33])
def test_shapes_no_blob_can_have(shape: tuple[int, ...]) -> None:
    with pytest.raises(ArgumentError, match="no blob has such a shape"):
        Blob(shape)


@pytest.mark.parametrize("kind", LAYERS)
def test_the_table_finds_every_layer(kind: str) -> None:
    assert layer_class(kind).type == kind


def test_an_unknown_type_is_told_the_known() -> None:
    with pytest.raises(ArgumentError, match=r"one of .*Accuracy, .*Convolution, "):
        layer_class("Convolve")


@pytest.mark.parametrize("shape", [(2.5,), ("a",), (None, 3)], ids=repr)
def test_a_shape_is_whole(shape: tuple[object, ...]) -> None:
    blob = Blob((2, 3))
    with pytest.raises(ArgumentError, match="a shape is made of whole numbers"):
        blob.reshape(*shape)  # type: ignore[arg-type]
    assert blob.shape == (2, 3)
