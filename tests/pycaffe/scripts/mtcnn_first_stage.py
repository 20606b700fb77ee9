"""The first stage of MTCNN as its Python ports drive it: an image pyramid, a reshape for each scale, boxes by threshold."""

import os
import sys

import numpy as np

import caffe


def generate_boxes(score, reg, scale, threshold):
    stride, cell = 2, 12
    y, x = np.where(score.T >= threshold)[::-1] if score.ndim == 2 else (None, None)
    boxes = np.stack([np.fix((stride * x + 1) / scale), np.fix((stride * y + 1) / scale),
                      np.fix((stride * x + cell) / scale), np.fix((stride * y + cell) / scale)], 1)  # fmt: skip
    return np.hstack([boxes, score[y, x, None], reg[:, y, x].T])


folder, picture = sys.argv[1:3]
caffe.set_mode_cpu()
PNet = caffe.Net(os.path.join(folder, "det1.prototxt"), os.path.join(folder, "det1.caffemodel"), caffe.TEST)
img = caffe.io.load_image(picture) * 255
height, width = img.shape[:2]
m, factor, minl = 12.0 / 60, 0.709, min(height, width) * 12.0 / 60
scales = []
while minl >= 12:
    scales.append(m * factor ** len(scales))
    minl *= factor
total = []
for scale in scales[:3]:
    hs, ws = int(np.ceil(height * scale)), int(np.ceil(width * scale))
    im_data = (caffe.io.resize_image(img, (hs, ws)) - 127.5) * 0.0078125
    im_data = im_data.transpose(2, 1, 0)[None]
    PNet.blobs["data"].reshape(1, 3, ws, hs)
    PNet.blobs["data"].data[...] = im_data
    out = PNet.forward()
    total.append(generate_boxes(out["prob1"][0, 1].T, out["conv4-2"][0].transpose(0, 2, 1), scale, 0.6))
boxes = np.concatenate(total)
best = boxes[boxes[:, 4].argmax()]
assert boxes.shape[1] == 9 and best[4] > 0.9, best
print("best", [int(v) for v in best[:4]])
