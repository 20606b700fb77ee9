"""Small networks of every type that OpenCV 4's Caffe reader knows, and a few of several layers; text only."""

from __future__ import annotations

from typing import Any

W = 'weight_filler { type: "gaussian" std: 0.3 } bias_filler { type: "gaussian" std: 0.3 }'
FILLED = 'bias_term: true filler { type: "gaussian" std: 1 } bias_filler { type: "gaussian" std: 1 }'


def layer(name: str, kind: str, bottoms: str, tops: str, more: str = "") -> str:
    """One layer; bottoms and tops are separated by spaces."""
    ends = [f'{word}: "{blob}"' for word, blobs in (("bottom", bottoms), ("top", tops)) for blob in blobs.split()]
    return f'layer {{ name: "{name}" type: "{kind}" {" ".join(ends)} {more} }}\n'


def data(*shape: int) -> str:
    """The input."""
    return layer("input", "Input", "", "data", f"input_param {{ shape {{ {' '.join(f'dim: {n}' for n in shape)} }} }}")


def conv(name: str, bottom: str, outputs: int, kernel: int, *, kind: str = "Convolution", **fields: Any) -> str:
    """A convolution whose top has its name."""
    more = " ".join(f"{field}: {value}" for field, value in fields.items())
    return layer(name, kind, bottom, name, f"convolution_param {{ num_output: {outputs} kernel_size: {kernel} {more} {W} }}")


def pool(name: str, bottom: str, mode: str, kernel: int, **fields: Any) -> str:
    """A pooling whose top has its name."""
    more = " ".join(f"{field}: {value}" for field, value in fields.items())
    return layer(name, "Pooling", bottom, name, f"pooling_param {{ pool: {mode} kernel_size: {kernel} {more} }}")


def ip(name: str, bottom: str, outputs: int) -> str:
    """An InnerProduct whose top has its name."""
    return layer(name, "InnerProduct", bottom, name, f"inner_product_param {{ num_output: {outputs} {W} }}")


def one(kind: str, more: str = "", shape: tuple[int, ...] = (2, 3, 5, 6)) -> str:
    """A network of one layer."""
    return data(*shape) + layer("out", kind, "data", "out", more)


def eltwise(more: str) -> str:
    """Three inputs to an Eltwise."""
    double = layer("a", "Power", "data", "a", "power_param { scale: 2 shift: 1 }")
    return data(2, 3, 5, 6) + double + layer("b", "Sigmoid", "data", "b") + layer("e", "Eltwise", "a b data", "e", more)


def normalised(name: str) -> str:
    """BatchNorm and Scale in place."""
    return layer(f"{name}_bn", "BatchNorm", name, name) + layer(
        f"{name}_scale", "Scale", name, name, f"scale_param {{ {FILLED} }}"
    )


NETS: dict[str, str] = {
    "convolution": data(2, 3, 9, 8) + conv("c", "data", 4, 3, stride=2, pad=1),
    "convolution, no bias": data(2, 3, 9, 8) + conv("c", "data", 4, 2, bias_term="false"),
    "convolution, groups, dilation": data(2, 4, 9, 8) + conv("c", "data", 6, 3, pad=2, group=2, dilation=2),
    "convolution, depthwise": data(1, 4, 9, 8) + conv("c", "data", 4, 3, pad=1, group=4),
    "convolution, 1x1": data(3, 4, 5, 6) + conv("c", "data", 5, 1),
    "convolution, rectangular": one(
        "Convolution",
        f"convolution_param {{ num_output: 4 kernel_h: 3 kernel_w: 2 stride_h: 1 stride_w: 2 pad_h: 1 pad_w: 0 {W} }}",
        (2, 3, 9, 8),
    ),
    "relu in place": data(2, 3, 9, 8) + conv("c", "data", 4, 3) + layer("r", "ReLU", "c", "c"),
    "leaky relu": one("ReLU", "relu_param { negative_slope: 0.1 }"),
    "deconvolution": data(2, 3, 5, 6) + conv("d", "data", 4, 4, kind="Deconvolution", stride=2, pad=1),
    "deconvolution, depthwise": data(2, 4, 5, 6)
    + conv("d", "data", 4, 4, kind="Deconvolution", stride=2, pad=1, group=4, bias_term="false"),
    "max pooling": data(2, 3, 9, 8) + pool("p", "data", "MAX", 3, stride=2),
    "max pooling, padded": data(2, 3, 9, 8) + pool("p", "data", "MAX", 3, stride=2, pad=1),
    "max pooling, global": one("Pooling", "pooling_param { pool: MAX global_pooling: true }"),
    "average pooling": data(2, 3, 9, 8) + pool("p", "data", "AVE", 3, stride=2),
    "average pooling, padded": data(2, 3, 9, 8) + pool("p", "data", "AVE", 3, stride=2, pad=1),
    "average pooling, global": one("Pooling", "pooling_param { pool: AVE global_pooling: true }"),
    "lrn": one("LRN", "lrn_param { local_size: 5 alpha: 0.3 beta: 0.75 }", (2, 7, 5, 6)),
    "lrn within": one("LRN", "lrn_param { local_size: 3 alpha: 0.3 beta: 0.75 norm_region: WITHIN_CHANNEL }"),
    "eltwise, sum": eltwise("eltwise_param { operation: SUM }"),
    "eltwise, product": eltwise("eltwise_param { operation: PROD }"),
    "eltwise, maximum": eltwise("eltwise_param { operation: MAX }"),
    "eltwise, weighted": eltwise("eltwise_param { operation: SUM coeff: 0.5 coeff: -2 coeff: 1 }"),
    "concat": data(2, 3, 5, 6) + layer("a", "AbsVal", "data", "a") + layer("e", "Concat", "a data", "e"),
    "concat, rows": data(2, 3, 5, 6)
    + layer("a", "AbsVal", "data", "a")
    + layer("e", "Concat", "a data", "e", "concat_param { axis: 2 }"),
    "slice": data(2, 5, 5, 6)
    + layer("s", "Slice", "data", "a b", "slice_param { axis: 1 slice_point: 2 }")
    + layer("r", "ReLU", "a", "r")
    + layer("t", "TanH", "b", "t"),
    "split": data(2, 3, 4, 5)
    + layer("s", "Split", "data", "a b")
    + layer("t", "TanH", "a", "t")
    + layer("e", "Eltwise", "t b", "e"),
    "flatten": data(2, 3, 5, 6) + layer("f", "Flatten", "data", "f") + ip("i", "f", 7),
    "flatten, axis": one("Flatten", "flatten_param { axis: 2 }"),
    "inner product": data(2, 3, 5, 6) + ip("i", "data", 7),
    "softmax": data(2, 3, 5, 6) + ip("i", "data", 7) + layer("p", "Softmax", "i", "p"),
    "softmax, spatial": one("Softmax"),
    "softmax, last axis": one("Softmax", "softmax_param { axis: 3 }"),
    "permute": one("Permute", "permute_param { order: 0 order: 2 order: 3 order: 1 }"),
    "reshape": one("Reshape", "reshape_param { shape { dim: 0 dim: -1 dim: 5 } }"),
    "reshape, some axes": one("Reshape", "reshape_param { shape { dim: -1 } axis: 1 num_axes: 2 }"),
    "scale": one("Scale", f"scale_param {{ {FILLED} }}"),
    "batch norm": data(2, 3, 5, 6) + conv("c", "data", 4, 3, bias_term="false") + normalised("c"),
    "prelu": one("PReLU", 'prelu_param { filler { type: "gaussian" std: 1 } }'),
    "elu": one("ELU", "elu_param { alpha: 0.7 }"),
    "absolute": one("AbsVal"),
    "sigmoid": one("Sigmoid"),
    "tanh": one("TanH"),
    "bnll": one("BNLL"),
    "swish": one("Swish"),
    "exp": one("Exp", "exp_param { base: 2 scale: 0.5 shift: 0.2 }"),
    "power": data(2, 3, 5, 6)
    + layer("a", "AbsVal", "data", "a")
    + layer("p", "Power", "a", "p", "power_param { power: 0.5 scale: 2 shift: 0.1 }"),
    "dropout": one("Dropout"),
    "mvn": one("MVN"),
    "mvn, across channels": one("MVN", "mvn_param { across_channels: true normalize_variance: false }"),
    "normalize": one(
        "Normalize",
        'norm_param { across_spatial: false channel_shared: false scale_filler { type: "gaussian" mean: 20 std: 3 } }',
    ),
    "prior boxes": data(1, 3, 20, 30)
    + conv("c", "data", 4, 3, stride=4, pad=1)
    + layer(
        "p",
        "PriorBox",
        "c data",
        "p",
        "prior_box_param { min_size: 6 max_size: 10 aspect_ratio: [2, 3] flip: true clip: true variance: [0.1, 0.1, 0.2, 0.2] }",
    ),
    "crop": data(2, 3, 7, 6)
    + pool("q", "data", "MAX", 3)
    + layer("p", "Crop", "data q", "p", "crop_param { axis: 2 offset: 1 }"),
    "inception": data(2, 3, 12, 12)
    + conv("c1", "data", 4, 1)
    + layer("r1", "ReLU", "c1", "c1")
    + conv("c3", "data", 4, 3, pad=1)
    + layer("r3", "ReLU", "c3", "c3")
    + pool("m", "data", "MAX", 3, stride=1, pad=1)
    + conv("cm", "m", 2, 1)
    + layer("cat", "Concat", "c1 c3 cm", "cat")
    + pool("ave", "cat", "AVE", 3, stride=2)
    + ip("fc", "ave", 5)
    + layer("prob", "Softmax", "fc", "prob"),
    "residual": data(2, 4, 8, 8)
    + conv("c1", "data", 4, 3, pad=1)
    + normalised("c1")
    + layer("r1", "ReLU", "c1", "c1")
    + conv("c2", "c1", 4, 3, pad=1)
    + normalised("c2")
    + layer("sum", "Eltwise", "data c2", "sum")
    + layer("r2", "ReLU", "sum", "sum"),
    "segmentation": data(1, 3, 16, 16)
    + conv("c", "data", 4, 3, stride=2, pad=1)
    + conv("score", "c", 2, 1)
    + conv("up", "score", 2, 4, kind="Deconvolution", stride=2, group=2, bias_term="false")
    + layer("crop", "Crop", "up data", "crop", "crop_param { axis: 2 offset: 1 }")
    + layer("prob", "Softmax", "crop", "prob"),
    "cascade": data(1, 3, 17, 13)
    + conv("c1", "data", 4, 3)
    + layer("pr", "PReLU", "c1", "c1", 'prelu_param { filler { type: "gaussian" std: 1 } }')
    + pool("p1", "c1", "MAX", 2, stride=2)
    + conv("c2", "p1", 2, 1)
    + layer("prob1", "Softmax", "c2", "prob1")
    + conv("box", "p1", 4, 1),
}
