"""examples/gpt.py's training for bench/three_machines.sh: its model, text, optimizer, schedule and clipping, in one of three ways.

    alone  the script as it trains without Troupe
    ddp    torch.distributed's DistributedDataParallel over Gloo, with RANK and WORLD_SIZE, MASTER_ADDR and MASTER_PORT
    local  post-local SGD: each process steps alone, PeriodicModelAverager takes the mean of the models every --tau steps

Prints a line "TIME SAMPLES" at the first batch and after each step: how many samples this process has trained. After the last sample rank 0 prints
"loss L", the test loss. So the output of a process that dies says how far it came.
"""
import argparse
import datetime
import os
import pathlib
import sys
import time

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))
import gpt  # noqa: E402


def shares(samples, batch, epochs, seed, rank, world):
    """(progress, batch) of one rank: it has one of each `world` successive batches. An incomplete round at an epoch's end is left out."""
    together = batch * world
    for epoch in range(epochs):
        order = torch.randperm(samples, generator=torch.Generator().manual_seed(seed + epoch))
        for first in range(0, samples - together + 1, together):
            yield (epoch * samples + first) / (epochs * samples), order[first + rank * batch : first + (rank + 1) * batch]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("way", choices=["alone", "ddp", "local"])
    parser.add_argument("--seconds", type=float, default=0, help="of training, at most; 0: all samples")
    parser.add_argument("--samples", type=int, default=0, help="of the text, drawn by the seed, at most; 0: all")
    parser.add_argument("--tau", type=int, default=16, help="local: steps between two means")
    gpt.shape_arguments(parser)
    arguments = parser.parse_args()

    torch.manual_seed(arguments.seed)
    train, test = gpt.windows(gpt.text_of(arguments), arguments.context)
    if arguments.samples:
        train = train[torch.randperm(len(train), generator=torch.Generator().manual_seed(arguments.seed))[: arguments.samples]]
    model = gpt.model_of(arguments)
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.lr, weight_decay=0.1, betas=(0.9, 0.95))

    rank, world, net, averager = 0, 1, model, None
    if arguments.way != "alone":
        torch.distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=120))
        rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    if arguments.way == "ddp":
        class Loss(nn.Module):  # DDP wraps what forward() computes
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, window):
                return self.model.loss(window)
        net = Loss()
        net._ddp_params_and_buffers_to_ignore = ["model.mask"]  # Gloo broadcasts no booleans
        net = nn.parallel.DistributedDataParallel(net)
        loss_of = net
    else:
        loss_of = model.loss
    if arguments.way == "local":
        from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
        averager = PeriodicModelAverager(period=arguments.tau, warmup_steps=0)

    done, began = 0, time.time()
    print(f"{began:.3f} 0", flush=True)
    for step, (progress, batch) in enumerate(shares(len(train), arguments.batch, arguments.epochs, arguments.seed, rank, world)):
        gpt.schedule(optimizer, arguments.lr, progress)
        loss = loss_of(train[batch])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if averager:
            averager.average_parameters(model.parameters())
        done += len(batch)
        now = time.time()
        print(f"{now:.3f} {done}", flush=True)
        over = bool(arguments.seconds) and now - began > arguments.seconds
        if world > 1 and arguments.seconds and step % 4 == 3:  # all stop at the same step
            any_over = torch.tensor([float(over)])
            torch.distributed.all_reduce(any_over, op=torch.distributed.ReduceOp.MAX)
            if any_over.item():
                return
        elif world == 1 and over:
            return
    if averager:
        for parameter in model.parameters():
            torch.distributed.all_reduce(parameter.data)
            parameter.data /= world
    if rank == 0:
        with torch.no_grad():
            print(f"loss {gpt.evaluate(model.eval(), test)['loss']:.6f}", flush=True)


if __name__ == "__main__":
    main()
