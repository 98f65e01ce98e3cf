"""A net of the contract as a program of the user's: program.py KIND FOLDER [WORDS], KIND one of numpy, torch. FOLDER/net.json has the layers, and
FOLDER/batch what the test writes before each step: float32 images [batch, …], then int32 labels [batch]. A program is given numbers of
samples, so sample k is row k of that file. WORDS: overlap (gradients are sent while backward goes on), alone (it steps by itself)."""

import json
import pathlib
import sys

import numpy

import troupe

RATE = 0.125  # kProgramRate of the tests: a power of 2, so that factors of it are exact


def main():
    kind, folder, words = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    net = json.loads((folder / "net.json").read_text())
    images = numpy.memmap(folder / "batch", "<f4", "r", 0, (net["batch"], *net["input"]))
    labels = numpy.memmap(folder / "batch", "<i4", "r", images.nbytes, (net["batch"],))
    (with_torch if kind == "torch" else with_numpy)(net, words, lambda batch: (images[batch], labels[batch]))


def with_numpy(net, words, data):
    from numpy_net import Net

    model = Net(net)

    def sgd(params, gradients, factor):
        for name in params:
            params[name] -= numpy.float32(RATE * factor) * gradients[name]

    run = troupe.join(params=model.parameters, step=None if "alone" in words else sgd)
    for batch in run.batches(net["batch"], net["batch"], epochs=1):
        loss, gradients = model.gradients(*data(batch))
        if "alone" in words:
            sgd(model.parameters, gradients, 1)
            run.step(loss)
        else:
            run.step(loss, gradients)
    run.evaluate(lambda: model.scores(*data(numpy.arange(net["batch"]))))


def with_torch(net, words, data):
    import torch
    from torch_net import Net, loss_of, scores_of

    model = Net(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    run = troupe.join(model, None if "alone" in words else optimizer, overlap="overlap" in words)
    for batch in run.batches(net["batch"], net["batch"], epochs=1):
        images, labels = map(torch.from_numpy, data(batch))
        loss = loss_of(net, model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        if "alone" in words:
            optimizer.step()
        run.step(loss)
    run.evaluate(lambda: scores_of(net, model, *map(torch.from_numpy, data(numpy.arange(net["batch"])))))


main()
