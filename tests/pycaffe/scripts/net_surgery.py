"""Cast fully connected layers into convolutions, so that a classifier slides over a larger image."""

import sys

import numpy as np
from google.protobuf import text_format

import caffe
from caffe.proto import caffe_pb2

model_def, model_weights = sys.argv[1:3]
net = caffe.Net(model_def, model_weights, caffe.TEST)

proto = caffe_pb2.NetParameter()
with open(model_def) as file:
    text_format.Merge(file.read(), proto)
for layer in proto.layer:
    if layer.type == "InnerProduct":
        below = layer.bottom[0]
        size = net.blobs[below].data.shape[2:] if net.blobs[below].data.ndim == 4 else (1, 1)
        outputs = layer.inner_product_param.num_output
        layer.ClearField("inner_product_param")
        layer.type = "Convolution"
        layer.name += "-conv"
        layer.convolution_param.num_output = outputs
        layer.convolution_param.kernel_h, layer.convolution_param.kernel_w = size
for shape in proto.input_shape:
    shape.dim[2] = shape.dim[3] = 12
for layer in proto.layer:
    if layer.type == "Input":
        layer.input_param.shape[0].dim[2] = layer.input_param.shape[0].dim[3] = 12
with open("full_conv.prototxt", "w") as file:
    file.write(text_format.MessageToString(proto))

net_full_conv = caffe.Net("full_conv.prototxt", model_weights, caffe.TEST)
params = [name for name in net.params if name + "-conv" in net_full_conv.params]
fc_params = {pr: (net.params[pr][0].data, net.params[pr][1].data) for pr in params}
conv_params = {pr: (net_full_conv.params[pr + "-conv"][0].data, net_full_conv.params[pr + "-conv"][1].data) for pr in params}
for pr in params:
    conv_params[pr][0].flat = fc_params[pr][0].flat
    conv_params[pr][1][...] = fc_params[pr][1]
net_full_conv.save("full_conv.caffemodel")

image = np.random.RandomState(0).randn(1, 2, 12, 12).astype(np.float32)
whole = net_full_conv.forward_all(data=image)["prob"]
corner = net.forward(data=image[:, :, :8, :8])["prob"]
assert whole.shape[2:] == (3, 3), whole.shape
assert np.allclose(whole[0, :, 0, 0], corner[0], atol=1e-6)
assert np.allclose(whole[0, :, 2, 2], net.forward(data=image[:, :, 4:, 4:])["prob"][0], atol=1e-6)
again = caffe.Net("full_conv.prototxt", "full_conv.caffemodel", caffe.TEST)
assert (again.forward(data=image)["prob"] == whole).all()
print("converted", params)
