"""A net of net.json in plain numpy: a chain of linear, conv2d, pools and activations, with its backward pass."""

import numpy


class Linear:
    def __init__(self, node, inputs):
        self.shapes = {"weight": (node["outputs"], int(numpy.prod(inputs))), "bias": (node["outputs"],)}

    def forward(self, x, p):
        self.x = x.reshape(len(x), -1)
        return self.x @ p["weight"].T + p["bias"]

    def backward(self, dy, p):
        dy = dy.reshape(len(dy), -1)
        return dy @ p["weight"], {"weight": dy.T @ self.x, "bias": dy.sum(0)}


class Windows:
    """The windows of an image: [batch, channels, rows, columns, kernel · kernel], and the sum of them back."""

    def __init__(self, node, inputs, outside):
        self.kernel, self.stride, self.padding, self.outside = node["kernel"], node["stride"], node["padding"], outside
        _, self.rows, self.columns = node["output"]
        self.shape = inputs

    def _each(self, image):
        for i in range(self.kernel):
            for j in range(self.kernel):
                yield image[:, :, i : i + self.stride * (self.rows - 1) + 1 : self.stride, j : j + self.stride * (self.columns - 1) + 1 : self.stride]

    def cut(self, x):
        around = [(0, 0), (0, 0), (self.padding,) * 2, (self.padding,) * 2]
        return numpy.stack(list(self._each(numpy.pad(x, around, constant_values=self.outside))), -1)

    def back(self, windows):
        channels, height, width = self.shape
        image = numpy.zeros((len(windows), channels, height + 2 * self.padding, width + 2 * self.padding), numpy.float32)
        for k, part in enumerate(self._each(image)):
            part += windows[..., k]
        return image[:, :, self.padding : self.padding + height, self.padding : self.padding + width]


class Conv2d:
    def __init__(self, node, inputs):
        self.windows = Windows(node, inputs, 0)
        self.groups = node["groups"]
        self.shapes = {"weight": (node["outputs"], inputs[0] // self.groups, node["kernel"], node["kernel"])}
        if node["bias"]:
            self.shapes["bias"] = (node["outputs"],)

    def _grouped(self, values):
        return values.reshape(len(values), self.groups, -1, *values.shape[2:])

    def forward(self, x, p):
        self.x = self._grouped(self.windows.cut(x))
        weight = p["weight"].reshape(self.groups, len(p["weight"]) // self.groups, *p["weight"].shape[1:2], -1)
        y = numpy.einsum("ngchwk,gock->ngohw", self.x, weight, optimize=True)
        y = y.reshape(len(x), -1, *y.shape[3:])
        return y + p["bias"][:, None, None] if "bias" in p else y

    def backward(self, dy, p):
        weight = p["weight"].reshape(self.groups, len(p["weight"]) // self.groups, *p["weight"].shape[1:2], -1)
        split = self._grouped(dy)
        gradients = {"weight": numpy.einsum("ngohw,ngchwk->gock", split, self.x, optimize=True).reshape(p["weight"].shape)}
        if "bias" in p:
            gradients["bias"] = dy.sum((0, 2, 3))
        dx = numpy.einsum("ngohw,gock->ngchwk", split, weight, optimize=True)
        return self.windows.back(dx.reshape(len(dy), -1, *dx.shape[3:])), gradients


class MaxPool:
    shapes = {}

    def __init__(self, node, inputs):
        self.windows = Windows(node, inputs, -numpy.inf)

    def forward(self, x, p):
        windows = self.windows.cut(x)
        self.first = windows.argmax(-1)[..., None] == numpy.arange(windows.shape[-1])
        return windows.max(-1)

    def backward(self, dy, p):
        return self.windows.back(dy[..., None] * self.first), {}


class AveragePool:
    """Padding does not count."""

    shapes = {}

    def __init__(self, node, inputs):
        self.windows = Windows(node, inputs, 0)
        self.count = self.windows.cut(numpy.ones((1, *inputs), numpy.float32)).sum(-1)

    def forward(self, x, p):
        return self.windows.cut(x).sum(-1) / self.count

    def backward(self, dy, p):
        return self.windows.back(numpy.repeat((dy / self.count)[..., None], self.windows.kernel**2, -1)), {}


class Activation:
    """Its derivative, of its value."""

    shapes = {}
    FUNCTIONS = {
        "relu": (lambda x: numpy.maximum(x, 0), lambda y: y > 0),
        "tanh": (numpy.tanh, lambda y: 1 - y * y),
        "sigmoid": (lambda x: 1 / (1 + numpy.exp(-x)), lambda y: y * (1 - y)),
        "flatten": (lambda x: x, lambda y: 1),
    }

    def __init__(self, node, inputs):
        self.function, self.derivative = self.FUNCTIONS[node["type"]]

    def forward(self, x, p):
        self.y = self.function(x)
        return self.y

    def backward(self, dy, p):
        return dy * self.derivative(self.y), {}


LAYERS = {"linear": Linear, "conv2d": Conv2d, "max_pool": MaxPool, "average_pool": AveragePool}


class Net:
    def __init__(self, net):
        self.nodes = net["nodes"]
        shapes = [net["input"]] + [node["output"] for node in self.nodes]
        self.layers = [LAYERS.get(node["type"], Activation)(node, shape) for node, shape in zip(self.nodes, shapes)]
        self.parameters = {f"{node['name']}.{part}": numpy.zeros(shape, numpy.float32)
                           for node, layer in zip(self.nodes, self.layers) for part, shape in layer.shapes.items()}
        self.squared = net["loss"] == "squared_error"

    def _of(self, node, layer):
        return {part: self.parameters[f"{node['name']}.{part}"] for part in layer.shapes}

    def _forward(self, images, labels):
        """The outputs, the loss of each sample, and the gradient of their sum."""
        x = images
        for node, layer in zip(self.nodes, self.layers):
            x = layer.forward(x, self._of(node, layer)).reshape(-1, *node["output"])
        outputs = x.reshape(len(x), -1)
        wanted = numpy.zeros_like(outputs)
        wanted[numpy.arange(len(labels)), labels] = 1
        if self.squared:
            return outputs, 0.5 * ((outputs - wanted) ** 2).sum(1), outputs - wanted
        shifted = outputs - outputs.max(1, keepdims=True)
        logarithms = shifted - numpy.log(numpy.exp(shifted).sum(1, keepdims=True))
        return outputs, -(logarithms * wanted).sum(1), numpy.exp(logarithms) - wanted

    def gradients(self, images, labels):
        _, losses, dy = self._forward(images, labels)
        dy = dy / numpy.float32(len(labels))
        gradients = {}
        for node, layer in zip(reversed(self.nodes), reversed(self.layers)):
            dy, own = layer.backward(dy.reshape(-1, *node["output"]), self._of(node, layer))
            gradients.update({f"{node['name']}.{part}": value for part, value in own.items()})
        return losses.mean(dtype=numpy.float64), gradients

    def scores(self, images, labels):
        outputs, losses, _ = self._forward(images, labels)
        ranks = (outputs > outputs[numpy.arange(len(labels)), labels][:, None]).sum(1)
        return {"loss": losses.mean(dtype=numpy.float64), "accuracy": (ranks < 1).mean(), "top5": (ranks < 5).mean(), "samples": len(labels)}
