#!/usr/bin/env python3
"""A GPT on the bytes of text that every Debian has, alone or as workers of a run (docs/guests/gpt.md).

    python3 examples/gpt.py --bytes 4000000
    troupe launch --workers 4 --strategy diloco --set strategy.tau=64 -- python3 examples/gpt.py

By default 10.8 million parameters; --layers, --width, --heads and --context make it smaller. Workers on several machines need the same text:
give them one file with --text.
"""
import argparse
import gzip
import math
import pathlib

import torch
import torch.nn.functional as F
from torch import nn

import troupe

FOLDERS = ["/usr/share/common-licenses", "/usr/share/doc"]
SUFFIXES = {"", ".txt", ".md", ".rst", ".html", ".gz"}


def debian_text(most, folders=FOLDERS, suffixes=SUFFIXES):
    """The first `most` bytes of the texts in these folders, by name; each file once."""
    text, seen = bytearray(), set()
    for path in (file for folder in folders for file in sorted(pathlib.Path(folder).rglob("*"))):
        if len(text) >= most:
            break
        if path.suffix not in suffixes or not path.is_file():
            continue
        data = path.read_bytes()
        try:
            data = gzip.decompress(data) if path.suffix == ".gz" else data
        except (OSError, EOFError):
            continue
        if b"\0" not in data and hash(data) not in seen:
            seen.add(hash(data))
            text += data + b"\n"
    return bytes(text[:most])


def windows(text, context):
    """(training, test) of [samples, context + 1] bytes: each predicts its next one. Every twentieth is for tests: the text's end alone would be
    documents of another kind."""
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    samples = (len(data) - 1) // context
    if samples < 20:
        raise SystemExit(f"{len(data)} bytes of text: at least {20 * context + 1} are needed for windows of {context}")
    every = torch.stack([data[n * context : (n + 1) * context + 1] for n in range(samples)])
    tests = torch.arange(samples) % 20 == 19
    return every[~tests], every[tests]


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width)
        self.joined = nn.Linear(width, width)
        self.before_feed = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, mask):
        batch, length, width = x.shape
        q, k, v = self.attention(self.before_attention(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)).masked_fill(mask[:length, :length], -math.inf).softmax(-1)
        x = x + self.joined((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(self.before_feed(x))


class GPT(nn.Module):
    """Predicts the next byte. The output layer's weight is the embedding's (tied)."""

    def __init__(self, layers, width, heads, context):
        super().__init__()
        self.bytes = nn.Embedding(256, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.last = nn.LayerNorm(width)
        self.scores = nn.Linear(width, 256, bias=False)
        self.scores.weight = self.bytes.weight
        self.register_buffer("mask", torch.ones(context, context, dtype=torch.bool).triu(1), persistent=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, text):
        x = self.bytes(text) + self.places.weight[: text.shape[1]]
        for block in self.blocks:
            x = block(x, self.mask)
        return self.scores(self.last(x))

    def loss(self, window):
        window = window.long()
        return F.cross_entropy(self(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())


def evaluate(model, windows, size=32):
    """The mean loss in nats, and in bits, of a byte."""
    loss = sum(model.loss(part).item() * len(part) for part in windows.split(size)) / len(windows)
    return {"loss": loss, "bits_per_byte": loss / math.log(2)}


def schedule(optimizer, rate, progress, warm_up=0.05):
    """Linear warm-up, then a cosine down to a tenth. Of the batch's place in the run, so it does not depend on who is fast."""
    factor = min(progress / warm_up, 1) if progress < warm_up else 0.1 + 0.45 * (1 + math.cos(math.pi * progress))
    for group in optimizer.param_groups:
        group["lr"] = rate * max(factor, 0.01)


def shape_arguments(parser):
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--heads", type=int, default=6)
    parser.add_argument("--context", type=int, default=128, help="bytes that it sees")
    parser.add_argument("--start", metavar="RUN", help="a run of the same shape: begin with its newest checkpoint, in place of random numbers")
    parser.add_argument("--text", help="a file to train on, in place of Debian's texts")
    parser.add_argument("--bytes", type=int, default=16_000_000, help="of text, at most")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="what computes: cpu, cuda, cuda:1 …")


def model_of(arguments):
    model = GPT(arguments.layers, arguments.width, arguments.heads, arguments.context)
    if arguments.start:
        troupe.load(model, arguments.start)
    return model.to(arguments.device)


def text_of(arguments, otherwise=debian_text):
    return pathlib.Path(arguments.text).read_bytes()[: arguments.bytes] if arguments.text else otherwise(arguments.bytes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shape_arguments(parser)
    arguments = parser.parse_args()

    torch.manual_seed(arguments.seed)
    train, test = (part.to(arguments.device) for part in windows(text_of(arguments), arguments.context))
    model = model_of(arguments)
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.lr, weight_decay=0.1, betas=(0.9, 0.95))

    run = troupe.join(model, optimizer, seed=arguments.seed)
    for batch in run.batches(len(train), arguments.batch, arguments.epochs):
        schedule(optimizer, arguments.lr, run.progress)
        loss = model.loss(train[batch])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        run.step(loss)
    scores = run.evaluate(lambda: evaluate(model, test))
    if scores:
        print(f"test loss {scores['loss']:.4f}, {scores['bits_per_byte']:.3f} bits per byte")


if __name__ == "__main__":
    main()
