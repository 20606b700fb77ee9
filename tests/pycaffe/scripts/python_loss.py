"""Train with the loss of euclidean.py, which lies beside this script, and compare it with the built-in one."""

import numpy as np

import caffe

TEXT = """
force_backward: true
layer { name: "data" type: "Input" top: "x" top: "y" input_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 2 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "%s" bottom: "ip" bottom: "y" top: "loss" %s }
"""
caffe.set_random_seed(3)
with open("own.prototxt", "w") as file:
    file.write(TEXT % ("Python", 'loss_weight: 1 python_param { module: "euclidean" layer: "EuclideanLossLayer" }'))
with open("builtin.prototxt", "w") as file:
    file.write(TEXT % ("EuclideanLoss", ""))
own = caffe.Net("own.prototxt", caffe.TRAIN)
builtin = caffe.Net("builtin.prototxt", caffe.TRAIN)
builtin.share_with(own)
rng = np.random.RandomState(0)
feed = dict(x=rng.randn(4, 3), y=rng.randn(4, 2))
assert np.allclose(own.forward(**feed)["loss"], builtin.forward(**feed)["loss"], rtol=1e-6)
a, b = own.backward(), builtin.backward()
assert np.allclose(a["x"], b["x"], atol=1e-7) and np.allclose(a["y"], b["y"], atol=1e-7)
assert np.allclose(own.params["ip"][0].diff, builtin.params["ip"][0].diff, atol=1e-7)

with open("solver.prototxt", "w") as file:
    file.write('train_net: "own.prototxt" base_lr: 0.5 lr_policy: "fixed"')
solver = caffe.SGDSolver("solver.prototxt")
solver.net.blobs["x"].data[...], solver.net.blobs["y"].data[...] = feed["x"], feed["y"]
losses = []
for _ in range(20):
    solver.step(1)
    losses.append(float(solver.net.blobs["loss"].data[0]))
assert losses[-1] < losses[0] / 3
print("diff", type(solver.net.layers[-1]).__name__, solver.net.layers[-1].diff.shape)
