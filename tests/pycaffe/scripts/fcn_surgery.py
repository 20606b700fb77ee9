"""A fully convolutional network for labels of pixels: specified in Python, its upsampling set to bilinear by hand."""

import numpy as np

import caffe
from caffe import layers as L
from caffe import params as P
from caffe.coord_map import crop


def conv_relu(bottom, nout, ks=3, stride=1, pad=1):
    conv = L.Convolution(
        bottom, kernel_size=ks, stride=stride, num_output=nout, pad=pad,
        weight_filler=dict(type="xavier"), param=[dict(lr_mult=1, decay_mult=1), dict(lr_mult=2, decay_mult=0)],
    )  # fmt: skip
    return conv, L.ReLU(conv, in_place=True)


def max_pool(bottom, ks=2, stride=2):
    return L.Pooling(bottom, pool=P.Pooling.MAX, kernel_size=ks, stride=stride)


def fcn(size=20, classes=3):
    n = caffe.NetSpec()
    n.data, n.label = L.DummyData(
        shape=[dict(dim=[1, 3, size, size]), dict(dim=[1, 1, size, size])],
        data_filler=[dict(type="uniform", min=-1, max=1), dict(type="constant", value=1)],
        ntop=2,
    )
    n.conv1_1, n.relu1_1 = conv_relu(n.data, 4, pad=10)
    n.pool1 = max_pool(n.relu1_1)
    n.conv2_1, n.relu2_1 = conv_relu(n.pool1, 4)
    n.pool2 = max_pool(n.relu2_1)
    n.fc3, n.relu3 = conv_relu(n.pool2, 6, pad=0)
    n.score_fr = L.Convolution(n.relu3, num_output=classes, kernel_size=1, param=[dict(lr_mult=1), dict(lr_mult=2)])
    n.upscore2 = L.Deconvolution(
        n.score_fr,
        convolution_param=dict(num_output=classes, kernel_size=4, stride=2, bias_term=False),
        param=[dict(lr_mult=0)],
    )
    n.score_pool1 = L.Convolution(n.pool1, num_output=classes, kernel_size=1, weight_filler=dict(type="xavier"))
    n.score_pool1c = crop(n.score_pool1, n.upscore2)
    n.fuse = L.Eltwise(n.upscore2, n.score_pool1c, operation=P.Eltwise.SUM)
    n.upscore = L.Deconvolution(
        n.fuse,
        convolution_param=dict(num_output=classes, kernel_size=4, stride=2, bias_term=False),
        param=[dict(lr_mult=0)],
    )
    n.score = crop(n.upscore, n.data)
    n.loss = L.SoftmaxWithLoss(n.score, n.label, loss_param=dict(normalize=False, ignore_label=255))
    return n.to_proto()


def upsample_filt(size):
    factor = (size + 1) // 2
    center = factor - 1 if size % 2 == 1 else factor - 0.5
    og = np.ogrid[:size, :size]
    return (1 - abs(og[0] - center) / factor) * (1 - abs(og[1] - center) / factor)


def interp(net, layers):
    for name in layers:
        m, k, h, w = net.params[name][0].data.shape
        assert m == k and h == w
        net.params[name][0].data[range(m), range(k), :, :] = upsample_filt(h)


with open("fcn.prototxt", "w") as file:
    file.write(str(fcn()))
with open("solver.prototxt", "w") as file:
    file.write('net: "fcn.prototxt" base_lr: 0.001 lr_policy: "fixed" momentum: 0.9 iter_size: 2 snapshot_prefix: "fcn"')

caffe.set_random_seed(0)
solver = caffe.SGDSolver("solver.prototxt")
interp_layers = [k for k in solver.net.params.keys() if "up" in k]
interp(solver.net, interp_layers)
assert interp_layers == ["upscore2", "upscore"]
before = solver.net.forward()["loss"].copy()
held = solver.net.params["upscore"][0].data.copy()
for _ in range(3):
    solver.step(5)
loss = solver.net.forward()["loss"]
assert solver.net.blobs["score"].data.shape == (1, 3, 20, 20)
assert loss < before, (loss, before)
assert (solver.net.params["upscore"][0].data == held).all() and np.abs(solver.net.params["conv1_1"][0].diff).max() > 0
print("labels", np.unique(solver.net.blobs["score"].data[0].argmax(0)))
