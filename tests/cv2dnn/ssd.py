"""A detector shaped like the res10 SSD face detector: two feature maps, the first normalised, priors, decoding, suppression."""

from __future__ import annotations

from .generated import conv, data, layer


def head(name: str, bottom: str, priors: int, classes: int, size: int) -> str:
    """What a feature map adds: locations and confidences, moved to the last axis and flattened, and its prior boxes."""
    text = ""
    for kind, outputs in (("loc", 4 * priors), ("conf", classes * priors)):
        text += conv(f"{name}_{kind}", bottom, outputs, 3, pad=1)
        text += layer(
            f"{name}_{kind}_perm", "Permute", f"{name}_{kind}", f"{name}_{kind}_perm", "permute_param { order: [0, 2, 3, 1] }"
        )
        text += layer(f"{name}_{kind}_flat", "Flatten", f"{name}_{kind}_perm", f"{name}_{kind}_flat", "flatten_param { axis: 1 }")
    boxes = (
        f"min_size: {size} max_size: {2 * size} aspect_ratio: 2 flip: true clip: false variance: [0.1, 0.1, 0.2, 0.2] offset: 0.5"
    )
    return text + layer(f"{name}_prior", "PriorBox", f"{bottom} data", f"{name}_prior", f"prior_box_param {{ {boxes} }}")


def ssd(classes: int = 3, side: int = 32, threshold: float = 0.3) -> str:
    """The whole detector; its output is (1, 1, N, 7)."""
    names = ("norm", "c2")
    joined = {kind: " ".join(f"{name}_{kind}_flat" for name in names) for kind in ("loc", "conf")}
    priors = " ".join(f"{name}_prior" for name in names)
    norm = 'norm_param { across_spatial: false channel_shared: false scale_filler { type: "constant" value: 2 } }'
    found = (
        f"num_classes: {classes} share_location: true background_label_id: 0 code_type: CENTER_SIZE "
        f"nms_param {{ nms_threshold: 0.45 top_k: 100 }} keep_top_k: 50 confidence_threshold: {threshold}"
    )
    return (
        'name: "ssd"\n'
        + data(1, 3, side, side)
        + conv("c1", "data", 6, 3, stride=4, pad=1)
        + layer("r1", "ReLU", "c1", "c1")
        + layer("norm", "Normalize", "c1", "norm", norm)
        + conv("c2", "c1", 8, 3, stride=2, pad=1)
        + layer("r2", "ReLU", "c2", "c2")
        + "".join(head(name, name, 4, classes, size) for name, size in zip(names, (8, 14), strict=True))
        + layer("loc", "Concat", joined["loc"], "loc", "concat_param { axis: 1 }")
        + layer("conf", "Concat", joined["conf"], "conf", "concat_param { axis: 1 }")
        + layer("prior", "Concat", priors, "prior", "concat_param { axis: 2 }")
        + layer("conf_rows", "Reshape", "conf", "conf_rows", f"reshape_param {{ shape {{ dim: 0 dim: -1 dim: {classes} }} }}")
        + layer("conf_soft", "Softmax", "conf_rows", "conf_soft", "softmax_param { axis: 2 }")
        + layer("conf_flat", "Flatten", "conf_soft", "conf_flat", "flatten_param { axis: 1 }")
        + layer(
            "detection_out", "DetectionOutput", "loc conf_flat prior", "detection_out", f"detection_output_param {{ {found} }}"
        )
    )
