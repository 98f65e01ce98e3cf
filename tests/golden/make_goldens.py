#!/usr/bin/env python3
"""Usage: make_goldens.py

Writes state_dicts.json, forward.json, steps.json and losses.json beside this script: what PyTorch and torchvision compute, in double precision, for the
models of the zoo. Weights and images come from a formula that the tests (tests/golden/formula.cpp) compute too, so the files hold only
results. Needs torch and torchvision (written with 1.13 and 0.14).
"""
import json
import math
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
import torchvision

HERE = pathlib.Path(__file__).resolve().parent
CLASSES = 10
torch.set_default_dtype(torch.float64)


# --- the formula ---------------------------------------------------------------------------------------------------------------

def uniform(name, count):
    """Numbers in [-1, 1), multiples of 2^-23: SplitMix64 of (FNV-1a of the name, index)."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(40)).astype(np.float64) / 2.0**23 - 1.0


def tensor(name, shape):
    """A parameter or running statistic, rounded to float32 as the tests have it."""
    u = uniform(name, math.prod(shape))
    if len(shape) > 1:
        u = u * math.sqrt(6.0 / math.prod(shape[1:]))  # He et al. 2015
    elif name.endswith(".running_var"):
        u = 1.0 + 0.5 * u
    elif name.endswith(".weight"):
        u = 1.0 + 0.2 * u
    else:
        u = 0.1 * u
    return torch.from_numpy(u.astype(np.float32).astype(np.float64).reshape(shape))


def images(name, batch, shape):
    u = 1.5 * uniform(name, batch * math.prod(shape))
    return torch.from_numpy(u.astype(np.float32).astype(np.float64).reshape([batch, *shape]))


def labels(name, batch):
    return torch.from_numpy(((uniform(name, batch) + 1) / 2 * CLASSES).astype(np.int64))


# --- models --------------------------------------------------------------------------------------------------------------------

class Functional(torch.nn.Module):
    """A network as a function of (image, parameters by name); parameters are made when they are first asked for."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.values = {}
        self.type = torch.float64

    def get(self, name, shape):
        if name not in self.values:
            self.values[name] = tensor(name, shape).to(self.type).requires_grad_("running" not in name)
        return self.values[name]

    def to(self, dtype):
        self.type = dtype
        return self

    def named_parameters(self):
        return [(name, value) for name, value in self.values.items() if value.requires_grad]

    def state_dict(self):
        return self.values

    def conv(self, x, name, outputs, kernel, stride=1, padding=0, groups=1, bias=True):
        weight = self.get(name + ".weight", [outputs, x.shape[1] // groups, kernel, kernel])
        return F.conv2d(x, weight, self.get(name + ".bias", [outputs]) if bias else None, stride, padding, 1, groups)

    def linear(self, x, name, outputs):
        x = x.flatten(1)
        return F.linear(x, self.get(name + ".weight", [outputs, x.shape[1]]), self.get(name + ".bias", [outputs]))

    def norm(self, x, name):
        c = [x.shape[1]]
        mean, var = self.get(name + ".running_mean", c), self.get(name + ".running_var", c)
        return F.batch_norm(x, mean, var, self.get(name + ".weight", c), self.get(name + ".bias", c), self.training)

    def forward(self, x):
        return self.function(self, x)


def mlp(n, x):
    x = torch.sigmoid(n.linear(x, "fc1", 100))
    return n.linear(torch.sigmoid(n.linear(x, "fc2", 100)), "fc3", CLASSES)


def lenet(n, x):
    x = F.max_pool2d(n.conv(x, "conv1", 20, 5), 2)
    x = F.max_pool2d(n.conv(x, "conv2", 50, 5), 2)
    return n.linear(F.relu(n.linear(x, "fc1", 500)), "fc2", CLASSES)


def cifar(n, x):
    x = F.max_pool2d(F.relu(n.conv(x, "conv1", 64, 5)), 2)
    x = F.max_pool2d(F.relu(n.conv(x, "conv2", 128, 5)), 2)
    x = F.relu(n.conv(x, "conv3", 64, 3))
    return n.linear(F.relu(n.linear(x, "fc1", 256)), "fc2", CLASSES)


def alexnet(n, x):
    def lrn(x):
        return F.local_response_norm(x, 5, 5e-4, 0.75, 2)  # PyTorch divides alpha by the size, the paper does not
    x = F.max_pool2d(lrn(F.relu(n.conv(x, "conv1", 96, 11, 4))), 3, 2)
    x = F.max_pool2d(lrn(F.relu(n.conv(x, "conv2", 256, 5, 1, 2, 2))), 3, 2)
    x = F.relu(n.conv(x, "conv3", 384, 3, 1, 1))
    x = F.relu(n.conv(x, "conv4", 384, 3, 1, 1, 2))
    x = F.max_pool2d(F.relu(n.conv(x, "conv5", 256, 3, 1, 1, 2)), 3, 2)
    return n.linear(F.relu(n.linear(F.relu(n.linear(x, "fc6", 4096)), "fc7", 4096)), "fc8", CLASSES)


INCEPTION = {"3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64), "4a": (192, 96, 208, 16, 48, 64),
             "4b": (160, 112, 224, 24, 64, 64), "4c": (128, 128, 256, 24, 64, 64), "4d": (112, 144, 288, 32, 64, 64),
             "4e": (256, 160, 320, 32, 128, 128), "5a": (256, 160, 320, 32, 128, 128), "5b": (384, 192, 384, 48, 128, 128)}


def googlenet(n, x):
    def conv(x, name, outputs, kernel, stride=1):
        return F.relu(n.conv(x, name, outputs, kernel, stride, kernel // 2))

    def halve(x):
        return F.max_pool2d(x, 3, 2, ceil_mode=True)

    def lrn(x):
        return F.local_response_norm(x, 5, 1e-4, 0.75, 1)

    def block(x, which):
        one, three_reduced, three, five_reduced, five, pooled = INCEPTION[which]
        name = f"inception{which}."
        return torch.cat([conv(x, name + "conv1x1", one, 1),
                          conv(conv(x, name + "reduce3x3", three_reduced, 1), name + "conv3x3", three, 3),
                          conv(conv(x, name + "reduce5x5", five_reduced, 1), name + "conv5x5", five, 5),
                          conv(F.max_pool2d(x, 3, 1, 1), name + "pooled", pooled, 1)], 1)
    x = lrn(halve(conv(x, "conv1", 64, 7, 2)))
    x = halve(lrn(conv(conv(x, "conv2.reduce", 64, 1), "conv2", 192, 3)))
    x = halve(block(block(x, "3a"), "3b"))
    for which in ("4a", "4b", "4c", "4d", "4e"):
        x = block(x, which)
    x = block(block(halve(x), "5a"), "5b")
    return n.linear(x.mean((2, 3)), "fc", CLASSES)


def wrn_28_4(n, x):
    def block(x, name, outputs, stride, first):
        activated = F.relu(n.norm(x, name + "bn1"))
        y = n.conv(activated, name + "conv1", outputs, 3, stride, 1, bias=False)
        y = n.conv(F.relu(n.norm(y, name + "bn2")), name + "conv2", outputs, 3, 1, 1, bias=False)
        return y + (n.conv(activated, name + "shortcut", outputs, 1, stride, bias=False) if first else x)
    x = n.conv(x, "conv1", 16, 3, 1, 1, bias=False)
    for group, width in ((1, 64), (2, 128), (3, 256)):
        for i in range(4):
            x = block(x, f"block{group}.{i}.", width, 2 if group > 1 and i == 0 else 1, i == 0)
    return n.linear(F.relu(n.norm(x, "bn")).mean((2, 3)), "fc", CLASSES)


def small_resnet(n, x):
    """tests/golden/training_test.cpp builds the same."""
    def block(x, name, outputs, stride):
        y = F.relu(n.norm(n.conv(x, name + "conv1", outputs, 3, stride, 1, bias=False), name + "bn1"))
        y = n.norm(n.conv(y, name + "conv2", outputs, 3, 1, 1, bias=False), name + "bn2")
        if stride > 1:
            x = n.norm(n.conv(x, name + "downsample.0", outputs, 1, stride, bias=False), name + "downsample.1")
        return F.relu(y + x)
    x = F.relu(n.norm(n.conv(x, "conv1", 16, 3, 1, 1, bias=False), "bn1"))
    x = block(block(x, "layer1.0.", 16, 1), "layer2.0.", 32, 2)
    return n.linear(x.mean((2, 3)), "fc", CLASSES)


def torchvisions(name):
    more = {"init_weights": False} if name == "googlenet" else {}
    model = getattr(torchvision.models, name)(weights=None, num_classes=CLASSES, **more)
    with torch.no_grad():
        for key, value in model.state_dict().items():
            if not key.endswith("num_batches_tracked"):
                value.copy_(tensor(key, list(value.shape)))
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model


# name of the zoo -> model, shape of an image
ZOO = {"mlp": (lambda: Functional(mlp), [1, 28, 28]), "lenet": (lambda: Functional(lenet), [1, 28, 28]),
       "cifar": (lambda: Functional(cifar), [3, 28, 28]), "alexnet": (lambda: Functional(alexnet), [3, 227, 227]),
       "alexnet_torch": (lambda: torchvisions("alexnet"), [3, 224, 224]),
       "googlenet": (lambda: Functional(googlenet), [3, 224, 224]),
       "googlenet_torch": (lambda: torchvisions("googlenet"), [3, 224, 224]),
       "vgg16": (lambda: torchvisions("vgg16"), [3, 224, 224]), "vgg19": (lambda: torchvisions("vgg19"), [3, 224, 224]),
       "resnet18": (lambda: torchvisions("resnet18"), [3, 224, 224]),
       "resnet50": (lambda: torchvisions("resnet50"), [3, 224, 224]),
       "wrn_28_4": (lambda: Functional(wrn_28_4), [3, 32, 32])}


# --- what is computed ----------------------------------------------------------------------------------------------------------

def write(name, rows):
    lines = ",\n".join(json.dumps(row) for row in rows)
    (HERE / name).write_text(f"[\n{lines}\n]\n")


def digits(values, count=9):
    return [float(f"{float(v):.{count}g}") for v in values]


def forward():
    rows = []
    for name, (make, shape) in ZOO.items():
        model = make().eval()
        batch = 2
        with torch.no_grad():
            logits = model(images("images", batch, shape))
        rows.append({"model": name, "input": shape, "batch": batch, "logits": digits(logits.flatten())})
        print(name, logits[0, :3].tolist())
    write("forward.json", rows)


def loss_of(output, wanted):
    if not isinstance(output, torch.Tensor):  # GoogLeNetOutputs: two auxiliary heads
        return F.cross_entropy(output.logits, wanted) + 0.3 * (F.cross_entropy(output.aux_logits1, wanted) +
                                                               F.cross_entropy(output.aux_logits2, wanted))
    return F.cross_entropy(output, wanted)


def gradients_of(name, smooth, shape, batch, dtype):
    relu = F.relu
    if smooth:
        F.relu = lambda x, inplace=False: torch.tanh(x)
    try:
        model = ZOO[name][0]().train().to(dtype)
        loss = loss_of(model(images("images", batch, shape).to(dtype)), labels("labels", batch))
    finally:
        F.relu = relu
    loss.backward()
    return model, loss, {key: parameter.grad.double().flatten() for key, parameter in model.named_parameters()}


def steps():
    """All models but vgg16 and vgg19, whose layers alexnet_torch has and whose steps take long, and googlenet: Functional has no auxiliary
    heads."""
    rows = []
    for name, smooth, shape, batch in (("resnet18", False, [3, 64, 64], 4), ("googlenet_torch", False, [3, 64, 64], 4),
                                       ("googlenet_torch", True, [3, 64, 64], 4),
                                       ("alexnet_torch", False, [3, 224, 224], 2),
                                       ("mlp", False, [1, 28, 28], 16), ("lenet", False, [1, 28, 28], 8),
                                       ("cifar", False, [3, 28, 28], 4), ("alexnet", False, [3, 227, 227], 2),
                                       ("resnet50", False, [3, 64, 64], 4), ("wrn_28_4", False, [3, 32, 32], 4)):
        model, loss, exact = gradients_of(name, smooth, shape, batch, torch.float64)
        _, _, rounded = gradients_of(name, smooth, shape, batch, torch.float32)
        # How far PyTorch's own float32 is off: a rectifier or a maximum that rounding switches changes whole gradients.
        rounding = max(float((rounded[key] - g).norm() / g.norm()) for key, g in exact.items())
        gradients = {key: digits([g.norm(), g[0], g[len(g) // 2], g[-1]]) for key, g in exact.items()}
        statistics = {key: digits([value.norm(), value[-1]]) for key, value in model.state_dict().items()
                      if key.endswith(("running_mean", "running_var"))}
        rows.append({"model": name, "activation": "tanh" if smooth else "auto", "input": shape, "batch": batch,
                     "loss": digits([loss])[0], "rounding": digits([rounding], 2)[0], "gradients": gradients,
                     "statistics": statistics})
        print(name, float(loss), rounding)
    write("steps.json", rows)


def losses():
    rows = []
    for name, function, shape, batch, lr in (("lenet", lenet, [1, 28, 28], 16, 0.001),
                                             ("small_resnet", small_resnet, [3, 16, 16], 16, 0.05)):
        model = Functional(function).train()
        momentum, weight_decay = 0.9, 1e-3
        optimizer, sequence = None, []
        for step in range(10):
            loss = F.cross_entropy(model(images(f"images.{step}", batch, shape)), labels(f"labels.{step}", batch))
            if optimizer is None:  # the first pass made the parameters
                trained = [value for value in model.values.values() if value.requires_grad]
                optimizer = torch.optim.SGD(trained, lr=lr, momentum=momentum, weight_decay=weight_decay)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sequence.append(float(loss))
        rows.append({"model": name, "input": shape, "batch": batch, "lr": lr, "momentum": momentum,
                     "weight_decay": weight_decay, "losses": digits(sequence)})
        print(name, sequence)
    write("losses.json", rows)


def state_dicts():
    rows = []
    for name, (make, shape) in ZOO.items():
        model = make()
        if not isinstance(model, Functional):
            tensors = {key: list(value.shape) for key, value in model.state_dict().items()}
            rows.append({"model": name, "input": shape, "tensors": tensors})
    write("state_dicts.json", rows)


if __name__ == "__main__":
    torch.manual_seed(0)
    state_dicts()
    forward()
    steps()
    losses()
