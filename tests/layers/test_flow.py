"""FlowNet's and DispNet's layers: correlations, warps, the loss, against loops written out; and LSTMUnit against LSTM."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride import load_caffe
from astride.errors import ArgumentError
from astride.layers.correlation import Correlation
from astride.layers.correlation1d import Correlation1D
from astride.layers.flow_warp import FlowWarp
from astride.layers.l1_loss import L1Loss
from astride.layers.lstm_unit import LSTMUnit

from .gradients import Bench, check_gradient
from .single import single

RANDOM = np.random.RandomState(31)
A, B = RANDOM.normal(size=(2, 3, 6, 7)), RANDOM.normal(size=(2, 3, 6, 7))


def correlated(a: np.ndarray, b: np.ndarray, k: int, reach: int, pad: int, stride: int, step: int, subtract: bool) -> np.ndarray:
    """Pixel by pixel, zeros around both images."""
    n, c, h, w = a.shape
    p = pad
    a, b = (np.pad(x, ((0, 0), (0, 0), (p, p), (p, p))) for x in (a, b))
    r = (k - 1) // 2
    out_h, out_w = (int(np.ceil((size + 2 * pad - 2 * (reach + r)) / stride)) for size in (h, w))
    grid = reach // step
    y = np.zeros((n, (2 * grid + 1) ** 2, out_h, out_w))
    for d in range(y.shape[1]):
        dx, dy = (d % (2 * grid + 1) - grid) * step, (d // (2 * grid + 1) - grid) * step
        for i in range(out_h):
            for j in range(out_w):
                y1, x1 = i * stride + reach, j * stride + reach
                own = a[:, :, y1 : y1 + k, x1 : x1 + k]
                other = b[:, :, y1 + dy : y1 + dy + k, x1 + dx : x1 + dx + k]
                y[:, d, i, j] = (np.abs(own - other) if subtract else own * other).sum((1, 2, 3)) / (k * k * c)
    return y


@pytest.mark.parametrize(
    ("k", "reach", "pad", "stride", "step"), [(1, 2, 2, 1, 1), (3, 2, 3, 1, 2), (1, 3, 3, 2, 2), (1, 0, 0, 1, 1), (3, 1, 0, 2, 1)]
)
@pytest.mark.parametrize("kind", ["MULTIPLY", "SUBTRACT"])
def test_correlation_is_flownets(k: int, reach: int, pad: int, stride: int, step: int, kind: str) -> None:
    fields = f"kernel_size: {k} max_displacement: {reach} pad: {pad} stride_1: {stride} stride_2: {step} correlation_type: {kind}"
    net = single(f'type: "Correlation" correlation_param {{ {fields} }}', a=A.shape, b=B.shape)
    expected = correlated(A, B, k, reach, pad, stride, step, kind == "SUBTRACT")
    np.testing.assert_allclose(net.forward(a=A, b=B)["y"], expected, rtol=1e-4, atol=1e-5)
    options: dict[str, Any] = {"kernel": k, "reach": reach, "pad": pad, "stride": stride, "step": step}
    check_gradient(Bench(Correlation(**options, subtract=kind == "SUBTRACT"), [A[:1, :, :5, :6], B[:1, :, :5, :6]]))


@pytest.mark.parametrize(("direction", "shifts"), [(0, (-2, -1, 0, 1, 2)), (1, (0, 1, 2)), (-1, (-3, -2, -1))])
def test_correlation1d_moves_sideways_only(direction: int, shifts: tuple[int, ...]) -> None:
    fields = f"kernel_size: 1 max_displacement: 2 pad: 2 single_direction: {direction}"
    net = single(f'type: "Correlation1D" correlation_param {{ {fields} }}', a=A.shape, b=B.shape)
    y = net.forward(a=A, b=B)["y"]
    assert y.shape == (2, len(shifts), 6, 7)
    wide = np.pad(B, ((0, 0), (0, 0), (0, 0), (9, 9)))
    for channel, shift in enumerate(shifts):
        np.testing.assert_allclose(y[:, channel], (A * wide[:, :, :, 9 + shift : 16 + shift]).mean(1), rtol=1e-4, atol=1e-6)
    check_gradient(Bench(Correlation1D(kernel=3, reach=2, pad=3, direction=direction), [A[:1, :, :5, :6], B[:1, :, :5, :6]]))


def test_correlation_refuses() -> None:
    with pytest.raises(ArgumentError, match="kernel_size odd: 2"):
        Correlation(kernel=2, reach=1)
    with pytest.raises(ArgumentError, match="different shapes"):
        Bench(Correlation(kernel=1, reach=1), [A, B[:, :2]])
    with pytest.raises(ArgumentError, match="do not fit in the image"):
        Bench(Correlation(kernel=1, reach=4), [A, B])
    with pytest.raises(ArgumentError, match="-1, 0 or 1: 2"):
        Correlation1D(kernel=1, reach=1, direction=2)


def test_warp_moves_pixels() -> None:
    image = np.arange(12.0).reshape(1, 1, 3, 4)
    flow = np.zeros((1, 2, 3, 4))
    flow[0, 0] = 1
    net = single('type: "FlowWarp"', image=image.shape, flow=flow.shape)
    assert net.forward(image=image, flow=flow)["y"][0, 0].tolist() == [[1, 2, 3, 0], [5, 6, 7, 0], [9, 10, 11, 0]]
    flow[0, 0], flow[0, 1] = 0.5, -0.25
    y = net.forward(image=image, flow=flow)["y"][0, 0]
    assert y[0].tolist() == [0, 0, 0, 0]
    assert y[1].tolist() == [3.5, 4.5, 5.5, 6]
    flow[0, 0, 1, 1] = np.nan
    missing = single('type: "FlowWarp" flow_warp_param { fill_value: NOT_A_NUMBER }', image=image.shape, flow=flow.shape)
    assert np.isnan(missing.forward(image=image, flow=flow)["y"][0, 0]).tolist() == [
        [True] * 4,
        [False, True, False, False],
        [False] * 4,
    ]


def test_warp_gradient() -> None:
    # Places a pixel's middle apart from any row, column or edge.
    flow = RANDOM.randint(-2, 3, (2, 2, 6, 7)) + RANDOM.uniform(0.2, 0.8, (2, 2, 6, 7))
    check_gradient(Bench(FlowWarp(), [A, flow]))
    with pytest.raises(ArgumentError, match="the flow does not fit"):
        Bench(FlowWarp(), [A, flow[:, :1]])


def test_l1_loss_by_hand() -> None:
    a, b = [[1, -2], [3, np.nan]], [[0, 0], [3, 0]]
    for fields, expected in (
        ("", 3 / 2),
        ("plateau: 1.5", 2 / 2),
        ("normalize_by_num_entries: true", 3 / (3 / 2)),
        ("l2_per_location: true epsilon: 0", np.sqrt(5) / 2),
        ("l2_per_location: true l2_prescale_by_channels: true epsilon: 0.5", (np.sqrt(2.5 + 0.5) + np.sqrt(0.5)) / 2),
    ):
        net = single(f'type: "L1Loss" l1_loss_param {{ {fields} }}', a=(2, 2), b=(2, 2))
        np.testing.assert_allclose(net.forward(a=a, b=b)["y"], expected, rtol=1e-6)
    assert single('type: "L1Loss"', a=(2, 2)).forward(a=[[1, -2], [3, 4]])["y"] == 5
    with pytest.raises(ArgumentError, match="different shapes"):
        Bench(L1Loss(), [A, B[:1]])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"plateau": 0.3},
        {"by_entries": True},
        {"per_location": True},
        {"per_location": True, "mean_of_channels": True, "plateau": 0.9},
    ],
)
def test_l1_loss_gradient(options: dict[str, Any]) -> None:
    check_gradient(Bench(L1Loss(**options), [A, B]))
    check_gradient(Bench(L1Loss(**options), [A]))


def test_nan_has_no_gradient_in_l1_loss() -> None:
    bench = Bench(L1Loss(), [np.array([[1.0, np.nan, -1.0]])])
    bench.forward()
    bench.backward([np.ones(())], [True])
    assert bench.bottom[0].diff.tolist() == [[1, 0, -1]]


# LSTMUnit


def test_lstm_unit_is_a_step_of_lstm() -> None:
    lstm = """
    input: "x" input_shape { dim: 1 dim: 2 dim: 12 } input: "cont" input_shape { dim: 1 dim: 2 }
    input: "h" input_shape { dim: 1 dim: 2 dim: 3 } input: "c" input_shape { dim: 1 dim: 2 dim: 3 }
    layer { name: "l" type: "LSTM" bottom: "x" bottom: "cont" bottom: "h" bottom: "c" top: "y" top: "ht" top: "ct"
      recurrent_param { num_output: 3 expose_hidden: true } }
    """
    net = load_caffe(lstm)
    net.params["l"][0].data[...] = np.eye(12)
    gates, c, cont = RANDOM.normal(size=(1, 2, 12)), RANDOM.normal(size=(1, 2, 3)), [[1, 0]]
    whole = net.forward(x=gates, cont=cont, h=np.zeros((1, 2, 3)), c=c)
    unit = load_caffe("""
    input: "c" input_shape { dim: 1 dim: 2 dim: 3 } input: "g" input_shape { dim: 1 dim: 2 dim: 12 }
    input: "cont" input_shape { dim: 1 dim: 2 }
    layer { name: "u" type: "LSTMUnit" bottom: "c" bottom: "g" bottom: "cont" top: "ct" top: "ht" }
    """).forward(c=c, g=gates, cont=cont)
    np.testing.assert_allclose(unit["ct"], whole["ct"], rtol=1e-6)
    np.testing.assert_allclose(unit["ht"], whole["ht"], rtol=1e-6)


def test_lstm_unit_gradient() -> None:
    c, g = RANDOM.normal(size=(1, 2, 3)), RANDOM.normal(size=(1, 2, 12))
    check_gradient(Bench(LSTMUnit(), [c, g, np.array([[1.0, 0.0]])], tops=2), [True, True, False])
    with pytest.raises(ArgumentError, match="do not belong together"):
        Bench(LSTMUnit(), [c, g[..., :9], np.ones((1, 2))], tops=2)
