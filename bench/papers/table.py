#!/usr/bin/env python3
"""The tables of Theano-MPI (Ma, Mao & Taylor 2016) and of Campos et al. (2017) beside what `troupe simulate` makes of their testbeds.

A cell is   predicted   counted: nothing was set by it
            calibrated  not counted: a number of the cluster file was set by it
            follows     not counted: arithmetic on calibrated cells of the same row, so agreement says little
            claim       not counted: a sentence of the paper, not a measurement (README.md says more)
"""
import functools
import json
import os
import subprocess
import sys

HERE = os.path.relpath(os.path.dirname(os.path.abspath(__file__)))
TROUPE = os.environ.get("TROUPE", "build/bin/troupe")
CALIBRATED, FOLLOWS, CLAIM = "calibrated", "follows", "claim"


@functools.cache
def simulate(run, cluster, model, settings, *more):
    command = [TROUPE, "simulate", f"{HERE}/runs/{run}.toml", "--cluster", f"{HERE}/{cluster}.toml", "--model", model, "--json"]
    command += more
    for key, value in settings:
        command += ["--set", f"{key}={value}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


LONG = ("--steps", "1000")  # queues before servers need a while to find their order


class Table:
    def __init__(self):
        self.errors = []

    def section(self, title):
        print(f"\n{title}\n{'':52s} {'paper':>8s} {'forecast':>9s} {'error':>8s}")

    def cell(self, name, paper, forecast, mark=""):
        error = forecast / paper - 1
        print(f"{name:52s} {paper:8.2f} {forecast:9.2f} {100 * error:+6.1f} %  {mark}".rstrip())
        if not mark:
            self.errors.append(abs(error))

    def share(self, limit):
        return 100 * sum(error <= limit for error in self.errors) / len(self.errors)


# ---- Theano-MPI

IMAGES = 5120
ALGORITHMS = ("ar", "asa", "asa16")
TABLE_3 = [  # cluster, model, batch, seconds on 1 and 8 GPUs, (communication in s, speed-up) by algorithm, calibrated cells
    ("theano-mpi-k20m", "alexnet", 128, 31.2, 3.90, ((2.01, 5.3), (0.75, 6.7), (0.47, 7.1)), ()),
    ("theano-mpi-k20m", "alexnet", 32, 36.40, 4.56, ((8.03, 2.9), (2.94, 4.9), (1.83, 5.7)), ("1", "ar", "asa", "asa16")),
    ("theano-mpi-k20m", "googlenet", 32, 134.9, 16.82, ((2.07, 7.1), (1.96, 7.2), (1.76, 7.3)), ("1", "asa")),
    ("theano-mpi-k80", "vgg", 32, 405.2, 51.79, ((41.41, 4.3), (8.60, 6.7), (4.84, 7.2)), ("1", "ar", "asa")),
]
TABLE_1 = [("alexnet", 128, {2: 1.7, 4: 3.4}), ("googlenet", 32, {2: 1.9, 4: 3.7})]  # 8 GPUs: Table 3's ASA


def bsp(cluster, model, batch, gpus, algorithm="asa"):
    return simulate("theano-mpi", cluster, model,
                    (("data.batch", batch), ("cluster.workers", gpus), ("exchange.algorithm", algorithm)))


def speed_up(run, one):
    return run["train"]["images_per_s"] / one["train"]["images_per_s"]


def theano_mpi(table):
    table.section("Theano-MPI, Table 3: seconds per 5,120 images, and speed-up")
    for cluster, model, batch, train_1, train_8, exchanges, calibrated in TABLE_3:
        name = f"{model}-{batch}"
        one = bsp(cluster, model, batch, 1)
        table.cell(f"{name}, training on 1 GPU", train_1, IMAGES / one["train"]["images_per_s"],
                   CALIBRATED if "1" in calibrated else "")
        table.cell(f"{name}, training on 8 GPUs", train_8, bsp(cluster, model, batch, 8)["time"]["compute_s"])
        for algorithm, (seconds, factor) in zip(ALGORITHMS, exchanges):
            eight = bsp(cluster, model, batch, 8, algorithm)
            known = algorithm in calibrated
            table.cell(f"{name}, {algorithm} on 8 GPUs, communication", seconds, eight["time"]["exchange_s"],
                       CALIBRATED if known else "")
            table.cell(f"{name}, {algorithm} on 8 GPUs, speed-up", factor, speed_up(eight, one), FOLLOWS if known else "")

    table.section("Theano-MPI, Table 1 and section 4: speed-up")
    for model, batch, factors in TABLE_1:
        for gpus, factor in factors.items():
            runs = [bsp("theano-mpi-k20m", model, batch, n) for n in (gpus, 1)]
            table.cell(f"{model}-{batch}, asa on {gpus} GPUs", factor, speed_up(*runs))
    easgd = simulate("theano-mpi-easgd", "theano-mpi-k20m", "alexnet", (), *LONG)
    table.cell("alexnet-128, EASGD with tau 1 on 8 GPUs", 6.7, speed_up(easgd, bsp("theano-mpi-k20m", "alexnet", 128, 1)))
    ar, asa16 = (bsp("theano-mpi-k20m", "alexnet", 128, 8, a)["time"]["exchange_s"] for a in ("ar", "asa16"))
    table.cell('alexnet-128, ar / asa16: "nearly 6 times faster"', 6, ar / asa16, CLAIM)


# ---- Campos et al.

DEDICATED = ("--cluster-set", "servers.placement=dedicated", "--cluster-set", "servers.hosts=spare")
TABLES_1_2 = [  # name, workers, servers, images/s, mark, options
    ("1 node", 1, 1, 124.18, CALIBRATED, ()),
    ("2 nodes, 2 workers + 1 server", 2, 1, 195.60, "", ()),
    ("4 nodes, 4 workers + 3 servers", 4, 3, 383.09, "", ()),
    ("4 nodes, 4 workers + 3 servers, another run", 4, 3, 374.73, "", ()),
    ("8 nodes, 8 workers + 7 servers", 8, 7, 809.10, CALIBRATED, ()),
    ("4 nodes, 4 workers + 1 server", 4, 1, 292.22, CALIBRATED, ()),
    ("7 nodes, 4 workers + 3 dedicated servers", 4, 3, 396.62, "", DEDICATED),
]


def servers_of(workers, servers, *options):
    return simulate("campos", "campos", "resnet50", (("cluster.workers", workers), ("cluster.servers", servers)), *LONG, *options)


def campos(table):
    table.section("Campos et al., Tables 1 and 2: images/s")
    for name, workers, servers, rate, mark, options in TABLES_1_2:
        table.cell(name, rate, servers_of(workers, servers, *options)["train"]["images_per_s"], mark)
    for workers, servers in ((2, 1), (4, 3), (8, 7)):
        staleness = servers_of(workers, servers)["exchange"]["staleness_mean"]
        table.cell(f'{workers} + {servers}: updates are "N − 1 steps old on average"', workers - 1, staleness, CLAIM)


if __name__ == "__main__":
    table = Table()
    theano_mpi(table)
    campos(table)
    print(f"\n{len(table.errors)} predicted cells")
    print(f"within 10 %: {table.share(.10):.1f} %")
    print(f"within 20 %: {table.share(.20):.1f} %")
