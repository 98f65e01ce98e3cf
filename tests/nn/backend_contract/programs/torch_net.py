"""A net of net.json as a module."""

import torch
from torch import nn
from torch.nn import functional


def layer_of(node, inputs):
    kind, channels = node["type"], inputs[0][0]
    if kind == "linear":
        size = inputs[0][0] * inputs[0][1] * inputs[0][2]
        return nn.Sequential(nn.Flatten(), nn.Linear(size, node["outputs"]))
    if kind == "conv2d":
        return nn.Conv2d(channels, node["outputs"], node["kernel"], node["stride"], node["padding"], groups=node["groups"], bias=node["bias"])
    if kind == "batch_norm":
        return nn.BatchNorm2d(channels, node["epsilon"], node["momentum"])
    if kind == "max_pool":
        return nn.MaxPool2d(node["kernel"], node["stride"], node["padding"], ceil_mode=node["ceil"])
    if kind == "average_pool":
        return nn.AvgPool2d(node["kernel"], node["stride"], node["padding"], ceil_mode=node["ceil"], count_include_pad=False)
    if kind == "adaptive_average_pool":
        return nn.AdaptiveAvgPool2d(node["size"])
    if kind == "lrn":
        return nn.LocalResponseNorm(node["size"], node["alpha"], node["beta"], node["k"])
    return {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "flatten": nn.Identity, "add": Sum, "concat": Concatenation}[kind]()


class Sum(nn.Module):
    def forward(self, *inputs):
        return sum(inputs)


class Concatenation(nn.Module):
    def forward(self, *inputs):
        return torch.cat(inputs, 1)


class Net(nn.Module):
    """Its outputs are those of the nodes that have a loss."""

    def __init__(self, net):
        super().__init__()
        self.net = net
        shapes = [node["output"] for node in net["nodes"]] + [net["input"]]  # [-1] is the input's
        self.layers = []
        for node in net["nodes"]:
            layer = layer_of(node, [shapes[k] for k in node["inputs"]])
            self.layers.append([layer])  # in a list: not under this name
            own = layer[1] if isinstance(layer, nn.Sequential) else layer
            if any(True for _ in own.parameters()):
                self.add_module(node["name"], own)

    def forward(self, images):
        values = {-1: images}
        for k, (node, [layer]) in enumerate(zip(self.net["nodes"], self.layers)):
            values[k] = layer(*(values[i] for i in node["inputs"])).reshape(-1, *node["output"])
        return [values[head["node"]].flatten(1) for head in self.net["heads"]]


def loss_of(net, outputs, labels):
    total = 0
    for head, scores in zip(net["heads"], outputs):
        if net["loss"] == "squared_error":
            loss = 0.5 * (scores - functional.one_hot(labels.long(), scores.shape[1])).square().sum(1).mean()
        else:
            loss = functional.cross_entropy(scores, labels.long())
        total = total + head["weight"] * loss
    return total


def scores_of(net, model, images, labels):
    scores = model(images)[-1]
    main = {**net, "heads": net["heads"][-1:]}
    ranks = (scores > scores.gather(1, labels.long()[:, None])).sum(1)
    return {"loss": float(loss_of(main, [scores], labels)), "accuracy": float((ranks < 1).float().mean()),
            "top5": float((ranks < 5).float().mean()), "samples": len(labels)}
