"""Classify a picture, and look at what the network saw on the way: the notebook everybody began with."""

import sys

import numpy as np

import caffe

caffe.set_mode_cpu()
model_def, model_weights, picture = sys.argv[1:4]
net = caffe.Net(model_def, model_weights, caffe.TEST)

mu = np.array([125.3, 123.0, 113.9])
transformer = caffe.io.Transformer({"data": net.blobs["data"].data.shape})
transformer.set_transpose("data", (2, 0, 1))
transformer.set_mean("data", mu)
transformer.set_raw_scale("data", 255)

net.blobs["data"].reshape(2, 3, 32, 32)
image = caffe.io.load_image(picture)
transformed_image = transformer.preprocess("data", image)
net.blobs["data"].data[...] = transformed_image
output = net.forward()
output_prob = output["prob"][0]
top_inds = output_prob.argsort()[::-1][:3]

for layer_name, blob in net.blobs.items():
    print(layer_name + "\t" + str(blob.data.shape))
for layer_name, param in net.params.items():
    print(layer_name + "\t" + str(param[0].data.shape), str(param[1].data.shape))

filters = net.params["conv1"][0].data.transpose(0, 2, 3, 1)
feat = net.blobs["conv1"].data[0, :16]
assert filters.shape[3] == 3 and feat.shape[0] == 16
assert np.allclose(transformer.deprocess("data", net.blobs["data"].data[0]), caffe.io.resize_image(image, (32, 32)), atol=1e-5)
assert abs(output_prob.sum() - 1) < 1e-5 and np.allclose(output["prob"][0], output["prob"][1])
print("top", list(top_inds))
