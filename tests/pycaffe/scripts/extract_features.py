"""Features of many pictures from one layer, batch by batch, into an array and into a BlobProtoVector."""

import sys

import numpy as np

import caffe

model_def, model_weights = sys.argv[1:3]
layer = "sum"
net = caffe.Net(model_def, model_weights, caffe.TEST)
images = np.random.RandomState(0).randn(7, 2, 8, 8).astype(np.float32)

batch = net.blobs["data"].num
rows = []
for start in range(0, len(images), batch):
    part = images[start : start + batch]
    net.blobs["data"].reshape(len(part), *part.shape[1:])
    net.blobs["data"].data[...] = part
    net.forward(end=layer)
    rows.append(net.blobs[layer].data.copy())
features = np.concatenate(rows)
net.blobs["data"].reshape(batch, *images.shape[1:])
net.reshape()
assert (net.forward_all(blobs=[layer], data=images)[layer] == features).all()
string = caffe.io.arraylist_to_blobprotovector_str(list(features))
assert all((a == b).all() for a, b in zip(features, caffe.io.blobprotovector_str_to_arraylist(string)))
print("features", features.shape)
