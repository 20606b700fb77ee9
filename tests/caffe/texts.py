"""Small prototxts."""

from __future__ import annotations

CONV_IP = """
name: "small"
input: "data"
input_shape { dim: 2 dim: 3 dim: 6 dim: 6 }
layer {
  name: "conv"
  type: "Convolution"
  bottom: "data"
  top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } }
}
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer {
  name: "ip"
  type: "InnerProduct"
  bottom: "conv"
  top: "ip"
  inner_product_param { num_output: 5 weight_filler { type: "gaussian" std: 0.1 } bias_filler { type: "constant" value: 0.5 } }
}
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
"""

TRAIN_TEST = """
layer {
  name: "data" type: "MemoryData" top: "data" top: "label" include { phase: TRAIN }
  memory_data_param { batch_size: 4 channels: 1 height: 5 width: 5 }
}
layer {
  name: "data" type: "MemoryData" top: "data" top: "label" include { phase: TEST }
  memory_data_param { batch_size: 2 channels: 1 height: 5 width: 5 }
}
layer {
  name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } }
}
layer { name: "drop" type: "Dropout" bottom: "ip" top: "ip" }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
