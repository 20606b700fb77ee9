"""astride bench gpu: what is counted, that times are taken where there is a GPU and only there, that a wrong kernel is seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.cli.console import astride as command
from tests.gpu_device import device

from astride.bench import gpu
from astride.errors import ArgumentError

__all__ = ["device"]

CONV = gpu.Case("small", "conv", (2, 8, 9, 9), (16, 8, 3, 3), (("padding", 1),))
BACK = gpu.Case("back", "conv_transpose", (2, 4, 5, 5), (4, 6, 2, 2), (("stride", 2),))
POOL = gpu.Case("pool", "max_pool", (2, 8, 8, 8), None, (("kernel", 2), ("stride", 2)))


def test_what_is_counted() -> None:
    conv = gpu.counted(CONV, CONV.plan())
    assert [row.direction for row in conv] == ["forward", "dx", "dw"]
    assert {row.flops for row in conv} == {2 * (2 * 9 * 9) * 16 * 8 * 9}
    assert {row.bytes for row in conv} == {4 * (2 * 8 * 81 + 16 * 8 * 9 + 2 * 16 * 81)}
    assert gpu.counted(BACK, BACK.plan())[0].flops == 2 * (2 * 5 * 5) * 4 * 6 * 4
    pool = gpu.counted(POOL, POOL.plan())
    assert [(row.direction, row.flops) for row in pool] == [("forward", 1024), ("dx", 1024)]
    assert pool[0].bytes == 4 * (1024 + 256)


def test_every_case_has_a_plan() -> None:
    for case in gpu.CASES:
        assert all(row.flops > 0 and row.bytes > 0 for row in gpu.counted(case, case.plan()))


def test_asking_for_cases() -> None:
    assert {case.op for case in gpu.asked_for("^max_pool")} == {"max_pool"}
    with pytest.raises(ArgumentError, match="no case"):
        gpu.asked_for("nothing")
    with pytest.raises(ArgumentError, match="regular expression"):
        gpu.asked_for("(")


def test_a_software_adapter_is_not_timed(device: Any) -> None:
    if not device.software:
        pytest.skip("this adapter is a GPU")
    rows = list(gpu.measure(device, [CONV]))
    assert [row.direction for row in rows if isinstance(row, gpu.Measured)] == ["forward", "dx", "dw"]
    assert all(isinstance(row, gpu.Measured) and row.seconds is None and row.agrees is None for row in rows)


@pytest.fixture
def timed(device: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A device that is treated as a GPU, and copies little."""
    if "timestamp-query" not in device.features:
        pytest.skip("the adapter has no timestamps")
    monkeypatch.setattr(gpu, "timed_on", lambda device: True)
    monkeypatch.setattr(gpu, "COPIED", 1 << 12)
    monkeypatch.setattr(gpu, "THREADS", 1 << 6)
    return device


def test_times_of_kernels(timed: Any) -> None:
    limits, *rows = list(gpu.measure(timed, [CONV, BACK, POOL], rounds=2))
    assert isinstance(limits, gpu.Limits) and limits.bytes > 0 and limits.flops > 0
    for row in rows:
        assert isinstance(row, gpu.Measured)
        assert row.seconds is not None and row.seconds > 0
        assert row.least == max(row.bytes / limits.bytes, row.flops / limits.flops)
        assert row.kernels and all(s >= 0 for s in row.kernels.values())
        assert row.agrees is (True if row.direction == "forward" else None)


def test_a_wrong_kernel_is_seen(timed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = gpu.dispatch.forward

    def wrong(*given: Any, **more: Any) -> Any:
        y, saved = right(*given, **more)
        return y + np.float32(1), saved

    monkeypatch.setattr(gpu.dispatch, "forward", wrong)
    rows = [row for row in gpu.measure(timed, [POOL], rounds=1) if isinstance(row, gpu.Measured)]
    assert [row.agrees for row in rows] == [False, None]


def test_the_command(device: Any) -> None:
    done = command("bench", "gpu", "--cases", "max 2x2")
    assert "max 2x2, first" in done.out
    if device.software:
        assert "no GPU timing was taken" in done.out
    data = command("bench", "gpu", "--cases", "max 2x2", "--json").data()
    assert data["software"] is device.software
    assert [row["direction"] for row in data["kernels"]] == ["forward", "dx"]
    assert data["timed"] or all(row["seconds"] is None for row in data["kernels"])


def test_options_of_other_benchmarks(device: Any) -> None:
    assert "not for gpu" in command("bench", "gpu", "--size", "5", status=2).err
    assert "no case has such a name" in command("bench", "gpu", "--cases", "nothing", status=1).err
