"""MVN: by hand, both gradients, in place, options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride.layers.mvn import MVN

from .gradients import Bench, check_gradient
from .single import single

RANDOM = np.random.RandomState(54)
X = RANDOM.normal(size=(2, 3, 4, 2))


def test_from_its_text() -> None:
    """Channels of mean 2 and 4 and of deviation 1; the image has mean 3 and deviation sqrt 2."""
    x = [[[[1, 3]], [[3, 5]]]]
    for text, y in (
        ("", [-1, 1, -1, 1]),
        ("eps: 1", [-0.5, 0.5, -0.5, 0.5]),
        ("normalize_variance: false", [-1, 1, -1, 1]),
        ("across_channels: true normalize_variance: false", [-2, 0, 0, 2]),
        ("across_channels: true", [-(2**0.5), 0, 0, 2**0.5]),
    ):
        net = single(f'type: "MVN" mvn_param {{ {text} }}', x=(1, 2, 1, 2))
        np.testing.assert_allclose(net.forward(x=x)["y"].ravel(), y, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("options", [{}, {"across_channels": True}, {"eps": 0.5}, {"normalize_variance": False}])
def test_gradient(options: dict[str, Any], in_place: bool) -> None:
    check_gradient(Bench(MVN(**options), [X], in_place=in_place))


def test_the_gradient_of_caffe() -> None:
    """It is the derivative where eps is as small as it usually is, and not where it is large."""
    check_gradient(Bench(MVN(exact_gradient=False), [X]))
    with pytest.raises(AssertionError, match="Not equal"):
        check_gradient(Bench(MVN(exact_gradient=False, eps=0.5), [X]))


def test_a_bottom_of_two_axes_has_one_value_a_channel() -> None:
    assert not Bench(MVN(), [X.reshape(6, 8)]).forward()[0].any()
    assert Bench(MVN(across_channels=True), [X.reshape(6, 8)]).forward()[0].any()
