#!/usr/bin/env python3
"""PyTorch's part of bench/finetune.sh.

    torch_resnet18.py pretrain CIFAR10 OUTPUT [--epochs E] [--threads T] [--most N]
    torch_resnet18.py evaluate WEIGHTS FOLDER

pretrain trains torchvision's resnet18 on six classes of CIFAR-10 (airplane, automobile, bird, frog, ship, truck) and writes
OUTPUT/weights.safetensors, with the names of its state_dict. The other four (cat, deer, dog, horse) become OUTPUT/train-*.tar and
test-*.tar with labels from 0 to 3 and classes.txt with their names: what the weights have never seen. CIFAR10: a folder with train*.tar and
test*.tar, of NAME.jpg and NAME.cls (as WebDataset writes them). --most: train on so many images.

evaluate loads a safetensors file into resnet18, strictly, and prints its accuracy on FOLDER's test*.tar.
"""
import argparse
import io
import json
import pathlib
import struct
import tarfile
import time

import numpy
import PIL.Image
import torch
import torch.nn.functional as F
import torchvision

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)  # as Troupe takes for pictures
DEVIATION = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)
FIRST = [0, 1, 2, 6, 8, 9]  # PyTorch's classes
OTHERS = {"cat": 3, "deer": 4, "dog": 5, "horse": 7}
BATCH = 64
RATE = 0.02


def samples(tar):
    """(JPEG, class) of each sample."""
    with tarfile.open(tar) as archive:
        parts = {}
        for member in archive:
            name, _, kind = member.name.rpartition(".")
            parts.setdefault(name, {})[kind] = archive.extractfile(member).read()
            if len(parts[name]) == 2:
                sample = parts.pop(name)
                yield sample["jpg"], int(sample["cls"])


def pixels(jpeg):
    return numpy.asarray(PIL.Image.open(io.BytesIO(jpeg)).convert("RGB"))


def tensors(images, labels):
    """images [n, 3, 32, 32] of bytes, labels [n]."""
    return torch.from_numpy(numpy.stack(images)).permute(0, 3, 1, 2), torch.tensor(labels)


def divide(folder, output):
    """Writes the shards of the other classes. The first classes' pictures by split, as tensors."""
    (output / "classes.txt").write_text("\n".join(OTHERS) + "\n")
    others, first = list(OTHERS.values()), {}
    for split in ("train", "test"):
        images, labels = [], []
        for tar in sorted(folder.glob(split + "*.tar")):
            with tarfile.open(output / tar.name, "w") as shard:
                for number, (jpeg, label) in enumerate(samples(tar)):
                    if label in FIRST:
                        images.append(pixels(jpeg))
                        labels.append(FIRST.index(label))
                        continue
                    for kind, data in (("jpg", jpeg), ("cls", str(others.index(label)).encode())):
                        member = tarfile.TarInfo(f"{number:06}.{kind}")
                        member.size = len(data)
                        shard.addfile(member, io.BytesIO(data))
        first[split] = tensors(images, labels)
    return first


def augmented(images):
    """A random 32 x 32 of each image with four pixels around, mirrored at random."""
    padded = F.pad(images, (4, 4, 4, 4))
    top, left = torch.randint(0, 9, (2,)).tolist()
    part = padded[:, :, top:top + 32, left:left + 32]
    return torch.where(torch.rand(len(part), 1, 1, 1) < 0.5, part.flip(3), part)


def prepared(images):
    return (images.float() / 255 - MEAN) / DEVIATION


def train(model, images, labels, epochs, most):
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9, weight_decay=5e-4)
    used = min(len(images), most)
    steps = epochs * (used // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps, pct_start=0.2)
    begin = time.time()
    for epoch in range(epochs):
        model.train()
        order, total = torch.randperm(used), 0.0
        for first in range(0, used - BATCH + 1, BATCH):
            batch = order[first:first + BATCH]
            loss = F.cross_entropy(model(augmented(prepared(images[batch]))), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"  PyTorch, epoch {epoch + 1} of {epochs}: loss {total / (used // BATCH):.3f}, {time.time() - begin:.0f} s", flush=True)


def accuracy(model, images, labels):
    model.eval()
    with torch.no_grad():
        right = sum((model(prepared(i)).argmax(1) == l).sum().item() for i, l in zip(images.split(256), labels.split(256)))
    return right / len(labels)


def save(state, path):
    """A safetensors file: the header's length, the header, the tensors."""
    header, data = {"__metadata__": {"format": "pt"}}, []
    at = 0
    for name, tensor in state.items():
        raw = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": {torch.float32: "F32", torch.int64: "I64"}[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


def load(path):
    raw = path.read_bytes()
    length, = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    state = {}
    for name, entry in header.items():
        begin, end = (8 + length + at for at in entry["data_offsets"])
        values = numpy.frombuffer(raw[begin:end], {"F32": "<f4", "I64": "<i8"}[entry["dtype"]])
        state[name] = torch.from_numpy(values.copy()).reshape(entry["shape"])
    return state


def pretrain(arguments):
    torch.manual_seed(1)
    torch.set_num_threads(arguments.threads)
    arguments.output.mkdir(parents=True, exist_ok=True)
    first = divide(arguments.cifar10, arguments.output)
    model = torchvision.models.resnet18(num_classes=len(FIRST))
    train(model, *first["train"], arguments.epochs, arguments.most)
    print(f"  PyTorch, accuracy on its own test images: {100 * accuracy(model, *first['test']):.1f} %", flush=True)
    save(model.state_dict(), arguments.output / "weights.safetensors")


def evaluate(arguments):
    model = torchvision.models.resnet18(num_classes=len(OTHERS))
    model.load_state_dict(load(arguments.weights))
    images, labels = zip(*(s for tar in sorted(arguments.folder.glob("test*.tar")) for s in samples(tar)))
    print(accuracy(model, *tensors([pixels(i) for i in images], labels)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    first = commands.add_parser("pretrain")
    first.add_argument("cifar10", type=pathlib.Path)
    first.add_argument("output", type=pathlib.Path)
    first.add_argument("--epochs", type=int, default=4)
    first.add_argument("--threads", type=int, default=1)
    first.add_argument("--most", type=int, default=1 << 30)
    first.set_defaults(run=pretrain)
    second = commands.add_parser("evaluate")
    second.add_argument("weights", type=pathlib.Path)
    second.add_argument("folder", type=pathlib.Path)
    second.set_defaults(run=evaluate)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
