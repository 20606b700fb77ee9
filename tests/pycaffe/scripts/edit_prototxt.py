"""Read a training text, make a deploy text of it, freeze layers, change a solver: editing with caffe_pb2."""

from google.protobuf import text_format

import caffe
from caffe.proto import caffe_pb2

TRAIN = """
name: "lesson"
layer { name: "data" type: "MemoryData" top: "data" top: "label" include { phase: TRAIN }
  memory_data_param { batch_size: 8 channels: 3 height: 5 width: 5 } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" param { lr_mult: 1 }
  convolution_param { num_output: 2 kernel_size: 3 weight_filler { type: "msra" } } }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip" inner_product_param { num_output: 4 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
net = caffe_pb2.NetParameter()
text_format.Merge(TRAIN, net)
for layer in net.layer:
    if layer.type == "Convolution":
        for param in layer.param:
            param.lr_mult = 0
deploy = caffe_pb2.NetParameter()
deploy.CopyFrom(net)
data = [layer for layer in deploy.layer if layer.type in ("MemoryData", "SoftmaxWithLoss")]
for layer in data:
    deploy.layer.remove(layer)
deploy.input.append("data")
deploy.input_shape.add(dim=[1, 3, 5, 5])
prob = deploy.layer.add()
prob.name, prob.type = "prob", "Softmax"
prob.bottom.append("ip")
prob.top.append("prob")
for name, message in (("train.prototxt", net), ("deploy.prototxt", deploy)):
    with open(name, "w") as file:
        file.write(text_format.MessageToString(message))

made = caffe.Net("deploy.prototxt", caffe.TEST)
assert made.inputs == ["data"] and made.outputs == ["prob"] and made.blobs["prob"].data.shape == (1, 4)
train = caffe.Net("train.prototxt", caffe.TRAIN)
assert train.blobs["data"].data.shape == (8, 3, 5, 5) and not train.inputs

train.save("train.caffemodel")
weights = caffe_pb2.NetParameter()
with open("train.caffemodel", "rb") as file:
    weights.ParseFromString(file.read())
blobs = {layer.name: [caffe.io.blobproto_to_array(blob) for blob in layer.blobs] for layer in weights.layer if layer.blobs}
assert {name: [b.shape for b in bs] for name, bs in blobs.items()} == {"conv": [(2, 3, 3, 3), (2,)], "ip": [(4, 18), (4,)]}
assert (blobs["conv"][0] == train.params["conv"][0].data).all()
for layer in weights.layer:
    if layer.name == "ip":
        layer.blobs[1].CopyFrom(caffe.io.array_to_blobproto(blobs["ip"][1] + 7))
with open("edited.caffemodel", "wb") as file:
    file.write(weights.SerializeToString())
made.copy_from("edited.caffemodel")
assert (made.params["ip"][1].data == 7).all()
print("kinds", [layer.type for layer in deploy.layer])
