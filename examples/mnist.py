#!/usr/bin/env python3
"""Digits: a small convolutional network on MNIST, alone or as workers of a run (docs/guests/mnist.md).

    python3 examples/mnist.py --data data/mnist
    troupe launch --workers 2 --strategy easgd -- python3 examples/mnist.py --data data/mnist

DATA is a folder with the four files of MNIST, as they are published (idx, with or without .gz).
"""
import argparse
import gzip
import pathlib
import struct

import torch
import torch.nn.functional as F
from torch import nn

import troupe


def idx(folder, name):
    """The array of bytes in an idx file: [items] or [items, rows, columns]."""
    path = pathlib.Path(folder) / name
    if not path.exists():
        path = path.with_name(name + ".gz")
    if not path.exists():
        raise SystemExit(f"{path.with_suffix('')}: no such file, nor with .gz: --data names the folder of MNIST's files")
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    dimensions = data[3] if data[:3] == b"\0\0\x08" else 0
    shape = struct.unpack(f">{dimensions}I", data[4 : 4 + 4 * dimensions])
    values = torch.frombuffer(bytearray(data), dtype=torch.uint8)[4 + 4 * dimensions :]
    if dimensions == 0 or values.numel() != torch.Size(shape).numel():
        raise SystemExit(f"{path}: not an idx file of bytes, or cut off")
    return values.reshape(shape)


def digits(folder, part, most):
    images = idx(folder, f"{part}-images-idx3-ubyte")[:most].unsqueeze(1).float() / 255
    labels = idx(folder, f"{part}-labels-idx1-ubyte")[:most].long()
    return (images - 0.1307) / 0.3081, labels


class Network(nn.Module):
    """Two convolutions, each with pooling, and two linear layers; dropout before the last."""

    def __init__(self, width):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, width, 5), nn.MaxPool2d(2), nn.ReLU(),
                                      nn.Conv2d(width, 2 * width, 5), nn.BatchNorm2d(2 * width), nn.MaxPool2d(2), nn.ReLU())
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(2 * width * 16, 128), nn.ReLU(), nn.Dropout(0.25), nn.Linear(128, 10))

    def forward(self, images):
        return self.classifier(self.features(images))


def evaluate(model, images, labels, size=1000):
    loss = correct = 0
    for x, y in zip(images.split(size), labels.split(size)):
        scores = model(x)
        loss += F.cross_entropy(scores, y, reduction="sum").item()
        correct += (scores.argmax(1) == y).sum().item()
    return {"loss": loss / len(labels), "accuracy": correct / len(labels)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="data/mnist")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--width", type=int, default=16, help="channels of the first convolution")
    parser.add_argument("--samples", type=int, help="take only so many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="what computes: cpu, cuda, cuda:1 …")
    arguments = parser.parse_args()

    torch.manual_seed(arguments.seed)
    x, y = (t.to(arguments.device) for t in digits(arguments.data, "train", arguments.samples))
    test = [t.to(arguments.device) for t in digits(arguments.data, "t10k", arguments.samples)]
    model = Network(arguments.width).to(arguments.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.lr, momentum=0.9, weight_decay=5e-4)

    run = troupe.join(model, optimizer, seed=arguments.seed)
    torch.manual_seed(arguments.seed + run.worker)  # each worker drops other units
    for batch in run.batches(len(x), arguments.batch, arguments.epochs):
        loss = F.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        run.step(loss)
    scores = run.evaluate(lambda: evaluate(model, *test))
    if scores:
        print(f"test loss {scores['loss']:.4f}, accuracy {scores['accuracy']:.4f}")


if __name__ == "__main__":
    main()
