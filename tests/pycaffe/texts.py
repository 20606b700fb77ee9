"""Small networks in Caffe's words, and a way to write them where scripts find them."""

from __future__ import annotations

from pathlib import Path

SMALL = """
name: "small" force_backward: true
input: "data" input_shape { dim: 2 dim: 2 dim: 4 dim: 4 }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 3 kernel_size: 3 weight_filler { type: "xavier" } bias_filler { value: 0.5 } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "left" type: "Pooling" bottom: "conv" top: "left" pooling_param { kernel_size: 2 } }
layer { name: "right" type: "Pooling" bottom: "conv" top: "right" pooling_param { pool: AVE kernel_size: 2 } }
layer { name: "sum" type: "Eltwise" bottom: "left" bottom: "right" top: "sum" }
layer { name: "ip" type: "InnerProduct" bottom: "sum" top: "ip"
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
"""

LEARNS = """
name: "learns"
layer { name: "data" type: "Input" top: "data" top: "label"
  input_param { shape { dim: 4 dim: 3 } shape { dim: 4 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""

SOLVER = 'net: "net.prototxt" base_lr: 0.5 lr_policy: "fixed" max_iter: 20 snapshot_prefix: "run" random_seed: 1 '


def written(name: str, text: str) -> str:
    """The name of a file of that text in the working directory."""
    Path(name).write_text(text)
    return name
