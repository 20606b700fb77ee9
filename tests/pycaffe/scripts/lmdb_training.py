"""Write pictures into LMDB with caffe.io, train from it with tests and snapshots, as the MNIST example does."""

import os

import lmdb
import numpy as np

import caffe
from caffe import layers as L
from caffe import params as P

rng = np.random.RandomState(0)
for name in ("train_lmdb", "test_lmdb"):
    env = lmdb.open(name, map_size=1 << 24)
    with env.begin(write=True) as txn:
        for i in range(50):
            label = i % 2
            pixels = (rng.rand(1, 8, 8) * 100 + 100 * label).astype(np.uint8)
            txn.put(f"{i:08}".encode("ascii"), caffe.io.array_to_datum(pixels, label).SerializeToString())
    env.close()


def lenet(lmdb_name, batch_size):
    n = caffe.NetSpec()
    n.data, n.label = L.Data(
        batch_size=batch_size, backend=P.Data.LMDB, source=lmdb_name, transform_param=dict(scale=1.0 / 255), ntop=2
    )
    n.conv1 = L.Convolution(n.data, kernel_size=3, num_output=4, weight_filler=dict(type="xavier"))
    n.pool1 = L.Pooling(n.conv1, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.score = L.InnerProduct(n.pool1, num_output=2, weight_filler=dict(type="xavier"))
    n.loss = L.SoftmaxWithLoss(n.score, n.label)
    return n.to_proto()


with open("train.prototxt", "w") as f:
    f.write(str(lenet("train_lmdb", 10)))
with open("test.prototxt", "w") as f:
    f.write(str(lenet("test_lmdb", 25)))
with open("solver.prototxt", "w") as f:
    f.write(
        'train_net: "train.prototxt" test_net: "test.prototxt" test_iter: 2 test_interval: 20 base_lr: 0.1 momentum: 0.9'
        ' weight_decay: 0.0005 lr_policy: "inv" gamma: 0.0001 power: 0.75 max_iter: 40 snapshot: 20'
        ' snapshot_prefix: "snapshots/lenet" solver_mode: CPU type: "SGD" random_seed: 1'
    )
solver = caffe.get_solver("solver.prototxt")
solver.solve()
correct = 0
for _ in range(2):
    solver.test_nets[0].forward()
    correct += sum(solver.test_nets[0].blobs["score"].data.argmax(1) == solver.test_nets[0].blobs["label"].data)
print("accuracy", correct / 50, sorted(os.listdir("snapshots"))[:2])
