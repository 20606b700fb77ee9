"""Devices: what they find and say, what they refuse, threads, forks, losses, and nothing that leaks."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from tests.gpu_device import device_or_skip

from astride import gpu
from astride.backends.webgpu.buffers import SMALLEST, size_class
from astride.backends.webgpu.program import flat_program
from astride.errors import ArgumentError, ArrayError, AstrideError, BackendUnavailable, UnsupportedError

DOUBLE = flat_program("double", [("x", "f32")], [("y", "f32")], "y[i] = 2.0 * x[i];")


def doubled(device: Any, x: Any) -> Any:
    commands = gpu.CommandBuffer(device)
    y = device.empty(x.shape)
    commands.run(DOUBLE, [device.tensor(x)], [y], x.size)
    commands.commit()
    return y


@pytest.fixture
def own() -> Any:
    """A device of this test alone, which it may lose."""
    device_or_skip()
    return gpu.Device()


def test_it_says_what_it_found(device: Any) -> None:
    text = str(device)
    assert device.name in text and device.interface in text
    assert ("software" in text) == device.software


def test_arrays_go_there_and_come_back(device: Any, rng: np.random.Generator) -> None:
    for dtype in ("float32", "int32", "uint32", *(["float16"] if "shader-f16" in device.features else [])):
        for shape in ((3, 5, 7), (1,), (), (0, 4)):
            array = rng.integers(0, 100, shape).astype(dtype)
            tensor = device.tensor(array)
            back = tensor.numpy()
            assert (back.shape, back.dtype) == (array.shape, array.dtype)
            np.testing.assert_array_equal(back, array)
    strided = rng.standard_normal((6, 8)).astype(np.float32)[::2, ::-1]
    np.testing.assert_array_equal(device.tensor(strided).numpy(), strided)
    swapped = strided.astype(">f4")
    np.testing.assert_array_equal(device.tensor(swapped).numpy(), strided)


def test_tensors_are_written_and_reshaped(device: Any) -> None:
    tensor = device.tensor(np.zeros((2, 3), np.float32))
    view = tensor.reshape(3, 2)
    tensor.write(np.arange(6, dtype=np.float32).reshape(2, 3))
    np.testing.assert_array_equal(view.numpy(), np.arange(6).reshape(3, 2))
    assert tensor.reshape((6,)).shape == (6,) and tensor.reshape(view.shape).shape == (3, 2)
    with pytest.raises(ArrayError, match="another number"):
        tensor.reshape(4, 2)
    with pytest.raises(ArrayError, match="does not fit"):
        tensor.write(np.zeros(6, np.float32))


@pytest.mark.parametrize(
    ("array", "error", "says"),
    [
        (np.zeros(3), ArrayError, "float32"),
        (np.zeros(3, bool), ArrayError, "float32"),
        ([1.0], ArrayError, "numpy.asarray"),
        (np.broadcast_to(np.float32(0), (1 << 26,)), ArgumentError, "smaller batch"),
    ],
)
def test_what_it_does_not_hold(device: Any, array: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        device.tensor(array)


@pytest.mark.parametrize(
    ("shape", "says"), [((2**32, 2**32), "smaller batch"), ((2**62, 4), "smaller batch"), ((-1,), "negative"), ((2.5,), "whole")]
)
def test_shapes_that_no_array_has(device: Any, shape: Any, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        device.empty(shape)


def test_dtypes_it_does_not_have(device: Any) -> None:
    with pytest.raises(UnsupportedError, match="float32"):
        device.empty((3,), "float64")


def test_a_software_driver_is_taken_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    if not device_or_skip().software:
        pytest.skip("this machine has a GPU")
    monkeypatch.delenv("ASTRIDE_GPU", raising=False)
    with pytest.raises(BackendUnavailable, match="allow_software") as caught:
        gpu.Device()
    assert "CPU" in str(caught.value)
    assert gpu.Device(allow_software=True).software and gpu.Device(software=True).software
    monkeypatch.setenv("ASTRIDE_GPU", "software")
    assert gpu.Device().software
    monkeypatch.setenv("ASTRIDE_GPU", "quantum")
    with pytest.raises(ArgumentError, match="ASTRIDE_GPU"):
        gpu.Device()


def test_without_wgpu_the_hint_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wgpu", None)
    with pytest.raises(BackendUnavailable, match=r"pip install 'astride\[gpu\]'"):
        gpu.Device()


def test_what_was_missing_is_looked_for_again(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from astride.backends.webgpu import host

    def none() -> Any:
        raise BackendUnavailable("there is no adapter", hint="a driver")

    with monkeypatch.context() as patch:
        patch.setattr(host, "shared", none)
        assert host.unavailable() == "there is no adapter: a driver"
    assert host.unavailable() is None


def test_tensors_of_another_device_are_refused(device: Any, own: Any) -> None:
    x = own.tensor(np.zeros(4, np.float32))
    commands = gpu.CommandBuffer(device)
    with pytest.raises(AstrideError, match="another device"):
        commands.run(DOUBLE, [x], [device.empty((4,))], 4)
    with pytest.raises(AstrideError, match="another device"):
        device.read(x)


def test_a_lost_device_refuses_and_is_restored(own: Any) -> None:
    x = np.arange(4, dtype=np.float32)
    old = own.tensor(x)
    commands = gpu.CommandBuffer(own)
    commands.run(DOUBLE, [old], [own.empty((4,))], 4)
    own.close()
    for step in (commands.commit, old.numpy, lambda: own.tensor(x), lambda: gpu.CommandBuffer(own)):
        with pytest.raises(AstrideError, match="lost"):
            step()
    own.restore()
    for step in (commands.commit, old.numpy):
        with pytest.raises(AstrideError, match="lost"):
            step()
    np.testing.assert_array_equal(doubled(own, x).numpy(), 2 * x)


@pytest.mark.parametrize("step", ["commit", "wait", "read", "upload", "compile"])
def test_a_loss_that_the_driver_makes_is_noticed(own: Any, step: str) -> None:
    x = np.ones(4, np.float32)
    doubled(own, x).numpy()
    commands, old = gpu.CommandBuffer(own), own.tensor(x)
    commands.run(DOUBLE, [old], [own.empty((4,))], 4)
    if step == "wait":
        commands.commit()
    own.wgpu.destroy()
    steps: dict[str, Any] = {
        "commit": commands.commit,
        "wait": commands.wait,
        "read": old.numpy,
        "upload": lambda: [own.tensor(np.ones(5 << 20, np.float32)) for _ in range(4)],
        "compile": lambda: gpu.Kernel(own, "k", {"x": "f32"}, {"y": "f32"}, {}, "y[i] = x[i];"),
    }
    with pytest.raises(AstrideError, match="the device is lost"):
        steps[step]()
    own.restore()
    np.testing.assert_array_equal(doubled(own, x).numpy(), 2 * x)


def test_the_shared_device_comes_back_after_a_loss(device: Any) -> None:
    from astride.backends.webgpu.device import shared

    device.close()
    assert shared() is device and not device.lost
    np.testing.assert_array_equal(doubled(device, np.ones(3, np.float32)).numpy(), [2, 2, 2])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_is_told_why_it_has_no_device() -> None:
    device_or_skip()
    code = """
import os, sys
import numpy as np
import astride
from astride import gpu
from astride.errors import AstrideError
device = gpu.Device()
device.tensor(np.zeros(3, np.float32))
image = np.zeros((1, 4, 4, 1), np.float32)
reading = lambda: astride.max_pool(image, kernel=2, layout="channels_last", backend="webgpu")
reading()
child = os.fork()
if child == 0:
    for step in (lambda: device.tensor(np.zeros(3, np.float32)), device.restore, gpu.Device, reading):
        try:
            step()
            os._exit(1)
        except AstrideError as error:
            if "fork" not in str(error):
                os._exit(2)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    env = {**os.environ, "ASTRIDE_GPU": "any"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_threads_share_a_device(device: Any) -> None:
    wrong: list[Any] = []

    def work(number: int) -> None:
        try:
            for step in range(25):
                x = np.full(100 + step, number, np.float32)
                if not (doubled(device, x).numpy() == 2 * number).all():
                    wrong.append((number, step))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_buffers_in_garbage_cycles_are_not_finalised(device: Any) -> None:
    class Cycle:
        pass

    for _ in range(20):
        knot = Cycle()
        knot.me, knot.tensor = knot, device.tensor(np.ones(321, np.float32))  # type: ignore[attr-defined]
    del knot
    gc.collect()
    for _ in range(40):
        np.testing.assert_array_equal(doubled(device, np.ones(321, np.float32)).numpy(), 2)


def nothing_leaks(device: Any, dispatches: int) -> None:
    x = device.tensor(np.ones(5000, np.float32))

    def burst(count: int) -> None:
        for number in range(count):
            commands = gpu.CommandBuffer(device)
            commands.run(DOUBLE, [x], [device.empty((5000,))], 5000)
            commands.commit()
            if number % 50 == 0:
                commands.wait()
        commands.wait()

    burst(300)
    made, before = device.buffers.made, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    burst(dispatches)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert device.buffers.made - made <= 2
    assert grown < 32 << 10, f"{grown} KiB more"


def test_nothing_leaks(device: Any) -> None:
    nothing_leaks(device, 1000)


@pytest.mark.slow
def test_nothing_leaks_over_many_dispatches(device: Any) -> None:
    nothing_leaks(device, 20_000)


def test_uploads_without_commits_do_not_pile_up(device: Any) -> None:
    tensor = device.empty((1 << 20,))
    array = np.ones(1 << 20, np.float32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(100):
        tensor.write(array)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10
    assert tensor.numpy().min() == 1


def test_size_classes_hold_what_they_are_for() -> None:
    for size in (0, 1, SMALLEST, 257, 1000, 4096, 4097, 5_000_001, 128 << 20):
        found = size_class(size)
        assert found >= size and found % 256 == 0
        assert found <= max(1.25 * size, SMALLEST + 256)
