"""One training process for bench/guests.sh: MODEL for STEPS steps of BATCH samples, in one of three ways. Prints its speed as a line of JSON.

    plain   PyTorch alone: zero_grad, backward, optimizer.step
    joined  the same by troupe.join: a worker of a run, or alone without one
    ddp     torch.distributed's DistributedDataParallel over Gloo, with RANK and WORLD_SIZE, MASTER_ADDR and MASTER_PORT
"""
import argparse
import json
import os
import pathlib
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))

WARM_UP = 5  # steps that do not count


def mnist(samples):
    from mnist import Network
    model = Network(16)
    x, y = torch.randn(samples, 1, 28, 28), torch.randint(0, 10, (samples,))
    return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), lambda net, batch: F.cross_entropy(net(x[batch]), y[batch])


def gpt(samples):
    from gpt import GPT
    model = GPT(6, 384, 6, 64)
    text = torch.randint(0, 256, (samples, 65))

    def loss(net, batch):
        scores = net(text[batch][:, :-1])
        return F.cross_entropy(scores.flatten(0, 1), text[batch][:, 1:].flatten())
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3), loss


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("way", choices=["plain", "joined", "ddp"])
    parser.add_argument("model", choices=["mnist", "gpt"])
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--workers", type=int, default=1, help="joined: of the run, which share the steps")
    arguments = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    samples = arguments.batch * arguments.steps * arguments.workers
    model, optimizer, loss_of = {"mnist": mnist, "gpt": gpt}[arguments.model](min(samples, 4096))
    rows = min(samples, 4096)

    if arguments.way == "joined":
        import troupe
        run = troupe.join(model, optimizer)
        batches = (torch.from_numpy(batch) % rows for batch in run.batches(samples, arguments.batch))
        step = run.step
    else:
        def numbers():
            for k in range(arguments.steps):
                yield torch.arange(k * arguments.batch, (k + 1) * arguments.batch) % rows
        batches = numbers()
        step = lambda loss: optimizer.step()
    if arguments.way == "ddp":
        torch.distributed.init_process_group("gloo")
        model._ddp_params_and_buffers_to_ignore = ["mask"]  # Gloo broadcasts no booleans
        model = torch.nn.parallel.DistributedDataParallel(model)

    done, in_step, began = 0, 0.0, 0.0
    for batch in batches:
        if done == WARM_UP:
            began, in_step = time.perf_counter(), 0.0
        loss = loss_of(model, batch)
        optimizer.zero_grad()
        loss.backward()
        before = time.perf_counter()
        step(loss)
        in_step += time.perf_counter() - before
        done += 1
    seconds = time.perf_counter() - began
    if done > WARM_UP:
        print(json.dumps({"samples_per_s": (done - WARM_UP) * arguments.batch / seconds, "steps": done,
                          "step_call_us": 1e6 * in_step / (done - WARM_UP)}), flush=True)


if __name__ == "__main__":
    main()
