#!/usr/bin/env python3
"""Two spirals: a network of three linear layers in plain numpy, alone or as workers of a run (docs/guests/numpy_mlp.md).

    python3 examples/numpy_mlp.py
    troupe launch --workers 2 --strategy easgd -- python3 examples/numpy_mlp.py
"""
import argparse

import numpy as np

import troupe


def spirals(samples, seed):
    """Points [samples, 2] on two arms with some noise, and the arm of each."""
    random = np.random.default_rng(seed)
    arm = np.arange(samples) % 2
    angle = 3 * np.pi * np.sqrt(random.random(samples))
    points = np.stack([np.cos(angle + np.pi * arm), np.sin(angle + np.pi * arm)], 1) * angle[:, None] / (3 * np.pi)
    return (points + 0.02 * random.standard_normal((samples, 2))).astype(np.float32), arm


class Momentum:
    """v ← μ v + g; w ← w − η v, for every array. `state` has the velocities by name."""

    def __init__(self, rate, momentum=0.9):
        self.rate = rate
        self.momentum = momentum
        self.state = {}

    def __call__(self, params, gradients, factor):
        for name, value in params.items():
            velocity = self.state.get(name, 0) * self.momentum + gradients[name]
            self.state[name] = velocity
            value -= self.rate * factor * velocity


def initial(widths, seed):
    random = np.random.default_rng(seed)
    params = {}
    for n, (inputs, outputs) in enumerate(zip(widths, widths[1:])):
        params[f"w{n}"] = (random.standard_normal((inputs, outputs)) * np.sqrt(2 / inputs)).astype(np.float32)
        params[f"b{n}"] = np.zeros(outputs, np.float32)
    return params


def forward(params, x):
    """The inputs of every layer, and the scores of the two arms."""
    layers, inputs = len(params) // 2, [x]
    for n in range(layers):
        x = x @ params[f"w{n}"] + params[f"b{n}"]
        if n + 1 < layers:
            x = np.maximum(x, 0)
            inputs.append(x)
    return inputs, x


def loss_of(scores, y):
    """The mean cross-entropy, and its gradient by the scores."""
    probabilities = np.exp(scores - scores.max(1, keepdims=True))
    probabilities /= probabilities.sum(1, keepdims=True)
    loss = -np.log(probabilities[np.arange(len(y)), y] + 1e-12).mean()
    probabilities[np.arange(len(y)), y] -= 1
    return loss, probabilities / len(y)


def gradients_of(params, x, y):
    inputs, scores = forward(params, x)
    loss, error = loss_of(scores, y)
    gradients = {}
    for n in reversed(range(len(inputs))):
        gradients[f"w{n}"] = inputs[n].T @ error
        gradients[f"b{n}"] = error.sum(0)
        error = (error @ params[f"w{n}"].T) * (inputs[n] > 0)
    return loss, gradients


def evaluate(params, x, y):
    scores = forward(params, x)[1]
    return {"loss": loss_of(scores, y)[0], "accuracy": (scores.argmax(1) == y).mean()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    x, y = spirals(arguments.samples, seed=arguments.seed)
    test = spirals(arguments.samples // 4, seed=arguments.seed + 1)
    params = initial([2, arguments.hidden, arguments.hidden, 2], arguments.seed)

    run = troupe.join(params=params, step=Momentum(arguments.lr), seed=arguments.seed)
    for batch in run.batches(len(x), arguments.batch, arguments.epochs):
        loss, gradients = gradients_of(params, x[batch], y[batch])
        run.step(loss, gradients)
    scores = run.evaluate(lambda: evaluate(params, *test))
    if scores:
        print(f"test loss {scores['loss']:.4f}, accuracy {scores['accuracy']:.4f}")


if __name__ == "__main__":
    main()
