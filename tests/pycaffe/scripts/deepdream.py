"""Gradient ascent on a picture from a layer in the middle, over octaves, as DeepDream does it."""

import numpy as np

import caffe

TEXT = """
force_backward: true
input: "data" input_shape { dim: 1 dim: 3 dim: 16 dim: 16 }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 6 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" pooling_param { kernel_size: 3 stride: 2 } }
layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "top" type: "Pooling" bottom: "conv2" top: "top" pooling_param { pool: AVE global_pooling: true } }
"""
with open("net.prototxt", "w") as file:
    file.write(TEXT)
caffe.set_random_seed(0)
net = caffe.Net("net.prototxt", caffe.TEST)


def objective_L2(dst):
    dst.diff[:] = dst.data


def make_step(net, step_size=1.5, end="conv2", jitter=2, objective=objective_L2):
    src, dst = net.blobs["data"], net.blobs[end]
    ox, oy = np.random.randint(-jitter, jitter + 1, 2)
    src.data[0] = np.roll(np.roll(src.data[0], ox, -1), oy, -2)
    net.forward(end=end)
    objective(dst)
    net.backward(start=end)
    g = src.diff[0]
    assert np.abs(g).max() > 0
    src.data[:] += step_size / np.abs(g).mean() * g
    src.data[0] = np.roll(np.roll(src.data[0], -ox, -1), -oy, -2)


np.random.seed(1)
base = np.random.rand(3, 16, 16).astype(np.float32)
energies = []
detail = np.zeros_like(base[:, ::2, ::2])
for size in (8, 16):
    octave = caffe.io.resize_image(base.transpose(1, 2, 0), (size, size)).transpose(2, 0, 1)
    if size > 8:
        detail = caffe.io.resize_image(detail.transpose(1, 2, 0), (size, size)).transpose(2, 0, 1)
    src = net.blobs["data"]
    src.reshape(1, 3, size, size)
    src.data[0] = octave + detail
    for _ in range(4):
        make_step(net, step_size=0.05)
        energies.append(float((net.blobs["conv2"].data ** 2).mean()))
    detail = src.data[0] - octave
assert energies[3] > energies[0] and energies[7] > energies[4]
print("shape", src.data.shape, net.blobs["top"].data.shape)
