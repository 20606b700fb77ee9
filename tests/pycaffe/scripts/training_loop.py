"""A training loop of one's own: steps, tests by hand, a falling rate, callbacks, a snapshot and going on from it."""

import numpy as np

import caffe
from caffe import layers as L
from caffe.proto import caffe_pb2


def net(batch, accuracy=False):
    n = caffe.NetSpec()
    n.data, n.label = L.MemoryData(batch_size=batch, channels=1, height=4, width=4, ntop=2)
    n.ip1 = L.InnerProduct(n.data, num_output=8, weight_filler=dict(type="xavier"))
    n.relu1 = L.ReLU(n.ip1, in_place=True)
    n.ip2 = L.InnerProduct(n.relu1, num_output=2, weight_filler=dict(type="xavier"))
    n.loss = L.SoftmaxWithLoss(n.ip2, n.label)
    if accuracy:
        n.accuracy = L.Accuracy(n.ip2, n.label)
    return n.to_proto()


for name, proto in (("train.prototxt", net(16)), ("test.prototxt", net(32, accuracy=True))):
    with open(name, "w") as file:
        file.write(str(proto))
s = caffe_pb2.SolverParameter()
s.train_net = "train.prototxt"
s.test_net.append("test.prototxt")
s.test_interval, s.max_iter, s.snapshot, s.random_seed = 100000, 60, 30, 7
s.test_iter.append(1)
s.type, s.base_lr, s.momentum, s.weight_decay = "SGD", 0.1, 0.9, 5e-4
s.lr_policy, s.gamma, s.stepsize = "step", 0.5, 20
s.display = 10
s.snapshot_prefix = "lesson"
s.solver_mode = caffe_pb2.SolverParameter.GPU
s.test_initialization = False
with open("solver.prototxt", "w") as file:
    file.write(str(s))

rng = np.random.RandomState(0)
images = rng.randn(64, 1, 4, 4).astype(np.float32)
labels = (images[:, 0, :2].sum((1, 2)) > images[:, 0, 2:].sum((1, 2))).astype(np.float32)

caffe.set_mode_gpu()
caffe.set_device(0)
solver = caffe.get_solver("solver.prototxt")
solver.net.set_input_arrays(images, labels)
solver.test_nets[0].set_input_arrays(images, labels)

train_loss, test_acc, rates = np.zeros(60), [], []
solver.add_callback(lambda: rates.append(solver.lr), lambda: None)
for it in range(60):
    solver.step(1)
    train_loss[it] = solver.net.blobs["loss"].data
    if it % 10 == 9:
        correct = 0
        for _ in range(2):
            solver.test_nets[0].forward()
            correct += (solver.test_nets[0].blobs["ip2"].data.argmax(1) == solver.test_nets[0].blobs["label"].data).sum()
        test_acc.append(correct / 64)
assert train_loss[-10:].mean() < train_loss[:10].mean() / 2 and test_acc[-1] > 0.9, (train_loss, test_acc)
assert np.allclose(rates, [0.1 * 0.5 ** (i // 20) for i in range(60)])
final = [blob.data.copy() for blobs in solver.net.params.values() for blob in blobs]

again = caffe.SGDSolver("solver.prototxt")
again.net.set_input_arrays(images, labels)
again.test_nets[0].set_input_arrays(images, labels)
again.restore("lesson_iter_30.solverstate")
again.solve()
assert again.iter == 60
assert all((a == b.data).all() for a, b in zip(final, (b for bs in again.net.params.values() for b in bs)))
deploy = caffe.Net("test.prototxt", "lesson_iter_60.caffemodel", caffe.TEST)
deploy.set_input_arrays(images, labels)
print("accuracy", float(deploy.forward()["accuracy"]) > 0.9)
