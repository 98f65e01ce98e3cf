#!/usr/bin/env python3
"""Adapters: a GPT is trained once on one kind of text, then only adapters of low rank learn another (docs/guests/lora.md).

    python3 examples/lora.py --base base.pt --train
    troupe launch --workers 2 --strategy diloco -- python3 examples/lora.py --base base.pt

The first command trains on Debian's texts and writes base.pt. The second learns the sources of Python's standard library, and exchanges the
adapters alone: with --rank 8 some 3 % of the parameters. --rank 0 trains all parameters instead, for comparison.
"""
import argparse
import os

import torch
from torch import nn

import troupe
from gpt import GPT, debian_text, evaluate, shape_arguments, text_of, windows


def python_text(most):
    return debian_text(most, [os.path.dirname(os.__file__)], {".py"})


class Adapted(nn.Module):
    """A linear layer that stays as it is, plus a product of two narrow ones, which begins as 0 (Hu et al. 2021)."""

    def __init__(self, linear, rank):
        super().__init__()
        self.linear = linear
        self.down = nn.Parameter(torch.randn(rank, linear.in_features) / rank)
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + x @ self.down.t() @ self.up.t()


def adapt(model, rank):
    """Freezes the model and gives each linear layer of its blocks an adapter."""
    model.requires_grad_(False)
    for block in model.blocks:
        for module in [*block.modules()]:
            for name, part in [*module.named_children()]:
                if isinstance(part, nn.Linear):
                    setattr(module, name, Adapted(part, rank))


def train(model, optimizer, text, test, arguments):
    run = troupe.join(model, optimizer, seed=arguments.seed)
    for batch in run.batches(len(text), arguments.batch, arguments.epochs):
        loss = model.loss(text[batch])
        optimizer.zero_grad()
        loss.backward()
        run.step(loss)
    return run.evaluate(lambda: evaluate(model, test))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", required=True, help="the model that is adapted: a file")
    parser.add_argument("--train", action="store_true", help="make that file: train the whole model on Debian's texts")
    parser.add_argument("--rank", type=int, default=8, help="of the adapters; 0: all parameters are trained")
    shape_arguments(parser)
    arguments = parser.parse_args()
    if not arguments.train and not os.path.exists(arguments.base):
        raise SystemExit(f"{arguments.base}: no such file: make it with --train")

    torch.manual_seed(arguments.seed)
    model = GPT(arguments.layers, arguments.width, arguments.heads, arguments.context)
    chosen = text_of(arguments, debian_text if arguments.train else python_text)
    text, test = (part.to(arguments.device) for part in windows(chosen, arguments.context))
    if not arguments.train:
        model.load_state_dict(torch.load(arguments.base, map_location="cpu"))
        if arguments.rank > 0:
            adapt(model, arguments.rank)
    model.to(arguments.device)
    trained = [value for value in model.parameters() if value.requires_grad]
    scores = train(model, torch.optim.AdamW(trained, lr=arguments.lr), text, test, arguments)
    if scores:
        count, of = sum(value.numel() for value in trained), sum(value.numel() for value in model.parameters())
        print(f"trained {count} of {of} parameters: test loss {scores['loss']:.4f}, {scores['bits_per_byte']:.3f} bits per byte")
        if arguments.train:
            torch.save(model.state_dict(), arguments.base)


if __name__ == "__main__":
    main()
