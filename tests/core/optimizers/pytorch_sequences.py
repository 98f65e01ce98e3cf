#!/usr/bin/env python3
"""Writes pytorch_sequences.hpp: parameters after each of six steps of PyTorch's optimizers, from fixed gradients.

Run it with PyTorch, in this folder:  python3 pytorch_sequences.py > pytorch_sequences.hpp
TensorFlow's RMSProp (epsilon inside the root) is computed in double from its formula: PyTorch has none.
"""
import math

import torch

START = [1.0, -2.0, 0.5, 0.0]
GRADIENTS = [[math.sin(1 + 1.7 * t + 0.9 * i) * (1 + i) for i in range(4)] for t in range(6)]


def sequence(make):
    x = torch.tensor(START, dtype=torch.float64, requires_grad=True)
    optimizer = make([x])
    rows = []
    for gradient in GRADIENTS:
        x.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
        rows.append(x.detach().tolist())
    return rows


def rmsprop_inside(lr, decay, epsilon, weight_decay):
    x, r, rows = list(START), [0.0] * 4, []
    for gradient in GRADIENTS:
        for i, g in enumerate(gradient):
            g += weight_decay * x[i]
            r[i] = decay * r[i] + (1 - decay) * g * g
            x[i] -= lr * g / math.sqrt(r[i] + epsilon)
        rows.append(list(x))
    return rows


def show(name, rows):
    print(f"inline constexpr Sequence {name}{{{{")
    for row in rows:
        print("    {" + ", ".join(f"{value:.9g}" for value in row) + "},")
    print("}};")


print("/// Written by pytorch_sequences.py with PyTorch " + torch.__version__.split("+")[0] + ": do not edit.")
print("#pragma once\n\n#include <array>\n\nnamespace troupe::core {\n")
print("using Sequence = std::array<std::array<double, 4>, 6>;  // [step][element]")
show("kGradients", GRADIENTS)
show("kAdam", sequence(lambda x: torch.optim.Adam(x, lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1)))
show("kAdamW", sequence(lambda x: torch.optim.AdamW(x, lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1)))
show("kAdadelta", sequence(lambda x: torch.optim.Adadelta(x, lr=0.7, rho=0.8, eps=1e-3, weight_decay=0.1)))
show("kRmsprop", sequence(lambda x: torch.optim.RMSprop(x, lr=0.05, alpha=0.8, eps=0.3, weight_decay=0.1)))
show("kRmspropInside", rmsprop_inside(0.05, 0.8, 0.3, 0.1))
print("\n}  // namespace troupe::core")
