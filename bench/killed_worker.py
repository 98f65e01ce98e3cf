#!/usr/bin/env python3
"""SIGKILL of a worker's process at a random moment, many times: what every strategy does (docs/nodes.md, "When a worker is lost").

    bench/killed_worker.py [SEEDS [STRATEGY ...]]          default 30 seeds, all strategies

Three nodes on this host with a worker each, steps of 20 ms, 6 epochs of 20 steps. One node is killed after a part of the run that the
seed draws: before, during or after whatever the worker sends. A strategy that goes on must end with exit code 0 and every sample
trained but those that the lost worker had part of; one that cannot must end with 75 and, resumed with a new node, reach the end. Either
must say within two seconds of the kill whom it lost. Beside that the accuracy of the same seeds undisturbed. Exit code 1: something of
this did not hold. bsp, resumed, must come to the very model of the undisturbed run.

BIN: where the program is (default build/bin).
"""

import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ALL = ["easgd", "eamsgd", "sync_easgd", "downpour", "ssp", "local_sgd", "diloco", "gossip", "bsp", "pairs", "mixed"]
STAND_STILL = {"bsp", "pairs", "mixed"}
EPOCHS, SAMPLES, BATCH = 6, 1200, 20
LIMIT_S = 120
CONFIG = f"""
[run]
epochs = {EPOCHS}
[model]
name = "mlp"
widths = [24]
[data]
name = "glyphs"
batch = {BATCH}
train_samples = {SAMPLES}
test_samples = 500
[train]
lr = 0.05
[cluster]
workers = 3
synthetic_step_ms = 20
"""

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
TROUPE = os.path.join(os.path.realpath(os.environ.get("BIN", "build/bin")), "troupe")


class Listened:
    """A process whose standard error is read as it comes, with the time of each line."""

    def __init__(self, arguments):
        self.process = subprocess.Popen([TROUPE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines = []
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            with self.changed:
                self.lines.append((time.monotonic(), line.rstrip()))
                self.changed.notify_all()

    def says(self, pattern):
        """When a line with `pattern` came, waiting for it; None: the process has ended without."""
        until = time.monotonic() + LIMIT_S
        with self.changed:
            while True:
                for at, line in self.lines:
                    if re.search(pattern, line):
                        return at, line
                if time.monotonic() > until or not self.reader.is_alive():
                    return None
                self.changed.wait(0.05)

    def end(self):
        out = self.process.stdout.read()
        code = self.process.wait(LIMIT_S)
        self.reader.join(LIMIT_S)
        return code, json.loads(out) if out.strip() else None

    def text(self):
        return "\n".join(line for _, line in self.lines)


class Node(Listened):
    def __init__(self):
        super().__init__(["node", "--listen", "127.0.0.1:0"])
        self.name = re.search(r"listens on ([^ ,]+)", self.says("listens on")[1]).group(1)


def train(nodes, directory, strategy, seed, resume=None):
    begin = ["--resume", resume] if resume else [config, "--set", f"run.dir={directory}", "--set", f"run.seed={seed}",
                                                 "--set", f"strategy.name={strategy}"]
    if not resume and strategy == "eamsgd":
        begin += ["--set", "train.optimizer=nesterov"]
    if not resume and strategy == "bsp":
        begin += ["--set", "exchange.algorithm=asa"]  # else two runs may sum in two orders
    return Listened(["train", *begin, "--nodes", ",".join(node.name for node in nodes), "--plain", "--json"])


def once(strategy, seed, nodes, scratch):
    """Accuracy undisturbed and disturbed, seconds until the loss was said, and what did not hold."""
    wrong = []
    code, undisturbed = train(nodes, f"{scratch}/{strategy}-{seed}-calm", strategy, seed).end()
    calm = undisturbed["test"]["accuracy"] if code == 0 else float("nan")
    if code != 0:
        wrong.append(f"undisturbed it ended with {code}")

    draw = random.Random(f"{strategy} {seed}")
    run = train(nodes, f"{scratch}/{strategy}-{seed}", strategy, seed)
    run.says("epoch 1/")
    time.sleep(draw.uniform(0, 0.4 * (EPOCHS - 2)))
    victim = draw.randrange(3)
    killed = time.monotonic()
    nodes[victim].process.send_signal(signal.SIGKILL)
    nodes[victim].process.wait()
    said = run.says("is lost")
    code, summary = run.end()
    nodes[victim] = Node()
    if not said:
        return calm, float("nan"), float("nan"), wrong + ["nobody said that it was lost:\n" + run.text()]
    noticed = said[0] - killed
    if noticed > 2:
        wrong.append(f"noticed after {noticed:.1f} s")
    if strategy in STAND_STILL:
        if code != 75:
            wrong.append(f"exit code {code}:\n" + run.text())
        directory = re.search(r"--resume (\S+)", run.text())
        again = train(nodes, None, strategy, seed, directory.group(1).rstrip("`"))
        code, summary = again.end()
        run = again
    if code != 0:
        return calm, float("nan"), noticed, wrong + [f"exit code {code}:\n" + run.text()]
    if strategy == "bsp" and summary["center_hash"] != undisturbed["center_hash"]:
        wrong.append("the resumed run came to another model than the undisturbed one")
    missing = EPOCHS * SAMPLES - summary["samples"]
    if not 0 <= missing <= SAMPLES // 3:  # its share of the epoch
        wrong.append(f"{missing} samples were not trained")
    return calm, summary["test"]["accuracy"], noticed, wrong


seeds = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 30
if len(sys.argv) > 1 and not sys.argv[1].isdigit():
    sys.exit(__doc__)
failures = 0
with tempfile.TemporaryDirectory() as scratch:
    config = f"{scratch}/config.toml"
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG)
    nodes = [Node() for _ in range(3)]
    try:
        print(f"{'strategy':11} {'runs':>4} {'noticed after, s':>17}   {'accuracy undisturbed':>21} {'with the loss':>14}")
        for strategy in sys.argv[2:] or ALL:
            rows = [once(strategy, seed, nodes, scratch) for seed in range(1, seeds + 1)]
            for seed, row in enumerate(rows, 1):
                for why in row[3]:
                    failures += 1
                    print(f"{strategy}, seed {seed}: {why}", file=sys.stderr)
            calm, hurt, noticed = ([row[k] for row in rows] for k in range(3))
            print(f"{strategy:11} {len(rows):4} {statistics.median(noticed):7.2f}, ≤ {max(noticed):5.2f}   "
                  f"{statistics.mean(calm):13.3f} ± {statistics.pstdev(calm):.3f} "
                  f"{statistics.mean(hurt):.3f} ± {statistics.pstdev(hurt):.3f}", flush=True)
    finally:
        for node in nodes:
            node.process.terminate()
            node.process.wait()
sys.exit(1 if failures else 0)
