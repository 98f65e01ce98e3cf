"""What gpu-check runs: the commands of each part, what their figures are and what they should reach."""
import json
import os
import pathlib
import sys

from . import gtest_results
from .runner import Step

# name: seconds that the parts before it leave to it. They add up to the default of --minutes; what a part does not use, the next ones may.
NAMES = {"tests": 150, "speed": 115, "start": 10, "device": 28, "workers": 36, "torch_eager": 71, "training": 90, "sanitizer": 25, "torch_compile": 0}
NETWORKS = ["alexnet", "googlenet", "vgg16", "resnet50"]
BATCHES = [64, 256]
SHARDS = pathlib.Path(__file__).resolve().parent / "shards.py"
PUBLISHED_H200 = 3079  # images/s of ResNet-50: PyTorch, AMP, one H200

SKIPPED_WITHOUT_GPU = "needs a GPU"
SLOWEST = "*APlanAndRecomputation*"  # of the contract: it measures engines of 16 graphs in every precision, and has not come to its end on a device yet


def budgets():
    """For the help: who gets how much time."""
    own = ", ".join("{} {}".format(name, seconds) for name, seconds in NAMES.items() if seconds)
    return ("Each part has seconds of its own ({}), and those that the parts before it did not use. So these get time only when some is left: the contract's "
            "slowest tests, most of sanitizer, and all of torch_compile. Name them alone to give them all the time: --parts torch_compile --minutes 8.").format(own)


def steps(part, machine):
    return globals()["_" + part](machine)


# ---- tests

def _read_tests(name, shards, at_least_one=False):
    """What the tests say, also those that are over when the command is ended. `at_least_one`: a test must have run."""

    def read(output, seconds, folder):
        figures = gtest_results.read(folder, name, shards)
        if at_least_one and sum(figures["tests"].values()) == figures["tests"]["skipped"]:
            raise ValueError("no test ran")
        return figures

    return read


def _tell_tests(figures, results):
    return gtest_results.tell(figures), None


def _tests_of(part, name, program, tests, seconds, machine, shards=1, prefix=(), at_least_one=False):
    path = machine.program(program)
    file = "{}-{}".format(part, "".join(c if c.isalnum() else "-" for c in name))
    command = [sys.executable, SHARDS, shards, file, *prefix, path or program, "--gtest_filter=" + tests, "--gtest_color=no"]
    return Step(part, name, command, seconds, _read_tests(file, shards, at_least_one), "" if path else "{} is not in this build".format(program), judge=_tell_tests)


def _tests(machine):
    if machine.on_host:
        few = "HostDevice.*:CudaDeviceTest.*:TimedDeviceTest.*:VectorRatesTest.*"
        contract = "Backends/Lrn.*:Backends/DropoutByLease.*"
        return [_tests_of("tests", "gpu_tests", "gpu_tests", few, 30, machine), _tests_of("tests", "backend contract", "backend_contract_tests", contract, 30, machine, 2),
                _tests_of("tests", "PyTorch's numbers", "golden_tests", "*GoldenTraining*/gpu_on_host", 30, machine),
                _tests_of("tests", "device memory of endpoints", "transport_tests", "Cuda*:Staged*", 30, machine)]
    # Engines that cuDNN compiles as they are asked for keep a core busy for seconds: processes share that out.
    shards = max(1, min(12, (os.cpu_count() or 1) - 2))
    return [_tests_of("tests", "gpu_tests", "gpu_tests", "Cu*:LoadDevice.*:NcclLibrary.TheReal*", 60, machine),
            _tests_of("tests", "device memory of endpoints", "transport_tests", "Cuda*:Staged*", 30, machine),
            _tests_of("tests", "PyTorch's numbers on cuda", "golden_tests", "*/cuda", 60, machine, at_least_one=True),
            _tests_of("tests", "backend contract on cuda", "backend_contract_tests", "*/cuda*-" + SLOWEST, 150, machine, shards, at_least_one=True),
            _tests_of("tests", "contract: plans, recomputation", "backend_contract_tests", SLOWEST + "/cuda*", 300, machine, 2, at_least_one=True)]


def _sanitizer(machine):
    found = machine.sanitizer()
    why = SKIPPED_WITHOUT_GPU if machine.on_host else "" if found else "there is no compute-sanitizer on this machine"
    layers = ":".join("Backends/{}/cuda".format(t) for t in ("Layers.LenetMatchesReferenceOnOneAndTwoThreads", "DropoutByLease.IsTheSameInEveryReplica",
                                                             "MovingStatistics.MoveTowardsEveryBatch"))
    statistics = "Backends/HalfPrecision.BatchNormsBehindConvolutions*/cuda_1*"  # sums of a convolution's engine
    both = layers + ":" + statistics
    all_steps = []
    for tool, program, tests, what, seconds in [("memcheck", "gpu_tests", "CudaDeviceTest.*", "vectors", 35), ("memcheck", "backend_contract_tests", both, "layers", 35),
                                                ("racecheck", "gpu_tests", "CudaDeviceTest.*", "vectors", 35), ("racecheck", "backend_contract_tests", layers, "layers", 35),
                                                ("synccheck", "backend_contract_tests", both, "layers", 35),
                                                ("racecheck", "backend_contract_tests", statistics, "statistics", 180)]:  # took more than 60 s on an H200
        prefix = [found or "compute-sanitizer", "--tool", tool, "--error-exitcode", "99", "--print-limit", "5"]
        step = _tests_of("sanitizer", "{}, {}".format(tool, what), program, tests, seconds, machine, prefix=prefix, at_least_one=True)
        step.why_not = why or step.why_not
        all_steps.append(step)
    return all_steps


# ---- training

def _sets(values):
    return [word for key, value in values.items() for word in ("--set", "{}={}".format(key, value))]


def _train(machine, values):
    values = dict({"run.checkpoint_every": "never", "run.dir": "runs", "cluster.device": machine.device}, **values)
    return [machine.troupe.resolve(), "train", machine.configs / "glyphs-easgd.toml", "--json", "--quiet"] + _sets(values)


def _dataset_values(machine, name):
    """Settings of [model] and [data], and the accuracy below which nothing was learned; None where that cannot be said."""
    if machine.on_host:
        shape = {"mnist": "[1,8,8]", "cifar": "[3,8,8]"}[name]
        return {"model.name": "mlp", "data.name": "synthetic", "data.shape": shape, "data.train_samples": 64, "data.test_samples": 16, "data.batch": 8, "run.epochs": 1}, None
    values = {"run.epochs": 1000, "run.max_seconds": 3, "data.decode_threads": max(1, min(8, (os.cpu_count() or 1) // 2))}
    if name == "mnist":
        folder = machine.dataset("mnist")
        values.update({"data.name": "mnist", "data.path": folder} if folder else {"data.name": "glyphs", "data.train_samples": 12800, "data.test_samples": 1000})
        return values, 0.5
    values["model.name"] = "cifar"
    folder = machine.dataset("cifar10")
    if folder is None:
        values.update({"data.name": "synthetic", "data.shape": "[3,28,28]", "data.train_samples": 12800, "data.test_samples": 1000})
        return values, None
    if any(folder.glob("train*.tar")):
        values.update({"data.name": "shards", "data.resize": 32})
    else:
        values["data.name"] = "cifar10"
    values.update({"data.path": folder, "data.crop": 28, "data.mirror": "true"})
    return values, 0.12


def _read_training(least):
    def read(output, seconds, folder):
        summary = json.loads(output.strip().splitlines()[-1])
        figures = {"images_per_s": summary["train"]["images_per_s"], "accuracy": summary["test"]["accuracy"], "loss": summary["train"]["loss"], "samples": summary["samples"],
                   "compute_s": summary["time"]["compute_s"], "load_s": summary["time"]["load_s"]}
        if least is not None and figures["accuracy"] < least:
            raise ValueError("it learned nothing: accuracy {:.2f}, at least {:.2f} should be reached".format(figures["accuracy"], least))
        return figures

    return read


def _tell_training(figures, results):
    return "{images_per_s:,.0f} images/s, accuracy {accuracy:.3f}".format(**figures), None


def _training(machine):
    all_steps = []
    # Members at sites of their own: messages from and to device memory. They come first: no other row trains with these.
    values, least = _dataset_values(machine, "mnist")
    for strategy in ("bsp", "easgd"):
        command = _train(machine, dict(values, **{"strategy.name": strategy, "cluster.workers": 2, "exchange.endpoint": "tcp"}))
        all_steps.append(Step("training", "mnist, {}, 2 workers over tcp".format(strategy), command, 20, _read_training(least), judge=_tell_training))
    for data in ("mnist", "cifar"):
        values, least = _dataset_values(machine, data)
        for strategy in ("easgd", "bsp", "downpour"):
            for workers in ((1, 2) if data == "mnist" else (2,)) if machine.on_host else (1, 2, 8):
                # Gradients of 512 samples, averaged, diverge with the default rate and no warm-up, on the CPU as well.
                rate = {"train.lr": 0.02} if (strategy, workers) == ("bsp", 8) else {}
                command = _train(machine, dict(values, **{"strategy.name": strategy, "cluster.workers": workers}, **rate))
                all_steps.append(Step("training", "{}, {}, {} worker{}".format(data, strategy, workers, "" if workers == 1 else "s"), command, 20, _read_training(least), judge=_tell_training))
    return all_steps


# ---- speed

def _bench_step(machine, model, batch, seconds, precision="bf16"):
    precision = "fp32" if machine.on_host else precision
    return [machine.troupe.resolve(), "bench", "step", "--model", model, "--batch", batch, "--precision", precision, "--device", machine.device, "--seconds", seconds, "--json"]


def _cases(machine):
    """(name of the row, model, batch)"""
    if machine.on_host:
        return [("lenet, batch 2", "lenet", 2)]
    return [("{}, batch {}".format(model, batch), model, batch) for batch in BATCHES for model in NETWORKS]


def _name_here(model):
    return {"alexnet": "alexnet_torch", "googlenet": "googlenet_torch"}.get(model, model)  # torchvision's


def _read_line(*keys):
    def read(output, seconds, folder):
        row = json.loads(output.strip().splitlines()[-1])
        return {key: row[key] for key in keys}

    return read


def _tell_speed(goal):
    def judge(figures, results):
        rate = figures["images_per_s"]
        return "{:,.0f} images/s, {:.3f} ms per step".format(rate, figures["ms_per_step"]), rate >= goal if goal else None

    return judge


def _speed(machine):
    all_steps = []
    for name, model, batch in _cases(machine):
        on_h200 = "H200" in ((machine.doctor.get("cuda", {}).get("names") or [""])[0])
        goal = PUBLISHED_H200 if on_h200 and (model, batch) == ("resnet50", 256) else None
        command = _bench_step(machine, _name_here(model), batch, "0.01" if machine.on_host else "0.5")
        all_steps.append(Step("speed", name, command, 45, _read_line("images_per_s", "ms_per_step", "gflops"), judge=_tell_speed(goal),
                              goal="{:,} images/s, as published".format(goal) if goal else None))
    return all_steps + _statistics(machine)


def _tell_beside(other):
    """The rate, and how it compares with that of a row before."""

    def judge(figures, results):
        text = _tell_speed(None)(figures, results)[0]
        rate = next((r.figures.get("images_per_s") for r in results if (r.step.part, r.step.name, r.status) == ("speed", other, "ok")), None)
        if not rate:
            return text, None
        figures["of_the_other"] = figures["images_per_s"] / rate
        return "{}; {:.3f} of {}".format(text, figures["images_per_s"] / rate, other), None

    return judge


def _statistics(machine):
    """resnet50 with engines that may add in any order, with and without statistics of batch norms in convolutions."""
    model, batch = ("lenet", 2) if machine.on_host else ("resnet50", 64)
    plain = "{}, batch {}".format(model, batch)
    all_steps = []
    for precision in ("bf16", "fp16"):
        any_order = "{}, {}, any order".format(plain, precision)
        for name, more, judge in [(any_order, [], _tell_beside(plain) if precision == "bf16" else _tell_speed(None)),
                                  (any_order + ", statistics apart", ["--statistics-apart"], _tell_beside(any_order))]:
            command = _bench_step(machine, model, batch, "0.01" if machine.on_host else "0.5", precision) + ["--nondeterministic"] + more
            all_steps.append(Step("speed", name, command, 45, _read_line("images_per_s", "ms_per_step", "gflops"), judge=judge))
    return all_steps


def _start(machine):
    model, batch = ("lenet", 2) if machine.on_host else ("resnet50", 64)
    command = _bench_step(machine, model, batch, "0.01")

    def read(output, seconds, folder):
        json.loads(output.strip().splitlines()[-1])
        return {"seconds": round(seconds, 2)}

    def judge(figures, results):
        return "{seconds:.2f} s".format(**figures), figures["seconds"] <= 10

    return [Step("start", "{}, batch {}, first time".format(model, batch), command, 45, read, judge=lambda figures, results: (judge(figures, results)[0], None)),
            Step("start", "{}, batch {}, engines known".format(model, batch), command, 20, read, judge=judge, goal="at most 10 s")]


# ---- device

GOAL_OF_A_COPY = 0.88
OPTIMIZERS = ("sgd", "momentum", "nesterov", "rmsprop", "adagrad", "adam", "adamw", "adadelta")


def _device(machine):
    device = "cuda_on_host" if machine.on_host else "cuda"
    bench = [machine.troupe.resolve(), "bench", "device", "--device", device, "--json"]
    small = ["--parameters", 10000, "--rounds", 1, "--model", "lenet", "--batch", 2]

    def read_vectors(output, seconds, folder):
        row = json.loads(output.strip().splitlines()[-1])
        rates = {v["kernel"]: v for v in row["vectors"]}
        rates["elastic_pair"], rates["adam"]  # they must be there
        return {"parameters": row["parameters"], "copy_gb_per_s": rates["copy"]["gb_per_s"],
                "of_a_copy": {name: round(rate["of_a_copy"], 4) for name, rate in rates.items() if name != "copy"},
                "gb_per_s": {name: round(rate["gb_per_s"], 1) for name, rate in rates.items()}}

    def judge_vectors(figures, results):
        of = {name: share for name, share in figures["of_a_copy"].items() if name == "elastic_pair" or name in OPTIMIZERS}
        least = min(of, key=of.get)
        text = "copy {:,.0f} GB/s; elastic_pair {:.2f} of it, adam {:.2f}, least {} {:.2f}".format(figures["copy_gb_per_s"], of["elastic_pair"], of["adam"], least, of[least])
        return text, None if machine.on_host else of[least] >= GOAL_OF_A_COPY

    def read_wait(output, seconds, folder):
        return json.loads(output.strip().splitlines()[-1])["step"]

    def judge_wait(figures, results):
        text = "waits {idle_us_per_step:.1f} us for the host, {host_copy_us_per_step:.1f} us for copies of {ms_per_step:.3f} ms".format(**figures)
        if not figures["captured"]:
            text += "; its passes could not be captured as graphs"
        return text, None if machine.on_host else figures["captured"] and figures["idle_us_per_step"] <= 20

    model = small[4:] if machine.on_host else ["--model", "resnet50", "--batch", 64, "--precision", "bf16"]
    steps_of = ["--steps", 2 if machine.on_host else 50]
    return [Step("device", "kernels over vectors", bench + (small if machine.on_host else ["--model", "lenet", "--batch", 64]) + ["--steps", 2], 30, read_vectors,
                 judge=judge_vectors, goal="at least {} of a copy".format(GOAL_OF_A_COPY)),
            Step("device", "waits in a step", bench + ["--parameters", 10000, "--rounds", 1] + model + steps_of, 45, read_wait, judge=judge_wait, goal="at most 20 us")]


def _workers(machine):
    many = 2 if machine.on_host else 8
    if machine.on_host:
        values = _dataset_values(machine, "mnist")[0]
    else:
        values = {"model.name": "resnet50", "data.name": "synthetic", "data.shape": "[3,224,224]", "data.classes": 1000, "data.train_samples": 100000, "data.test_samples": 64,
                  "data.batch": 64, "data.decode_threads": max(1, (os.cpu_count() or 2) - 2), "run.epochs": 1, "run.max_seconds": 10, "cluster.precision": "bf16"}

    def tell(figures, results):
        busy = figures["compute_s"] + figures["load_s"]
        return "{:,.0f} images/s, {:.0f} % of it waiting for loaders".format(figures["images_per_s"], 100 * figures["load_s"] / busy if busy else 0)

    def judge_many(figures, results):
        one = next((r.figures.get("images_per_s") for r in results if r.step.part == "workers" and r.status == "ok"), None)
        if not one:
            return tell(figures, results), None
        figures["of_one_worker"] = figures["images_per_s"] / one
        return "{}; {:.2f} of one worker".format(tell(figures, results), figures["of_one_worker"]), None if machine.on_host else figures["of_one_worker"] >= 0.95

    return [Step("workers", "1 worker", _train(machine, dict(values, **{"strategy.name": "bsp", "cluster.workers": 1})), 40, _read_training(None),
                 judge=lambda figures, results: (tell(figures, results), None)),
            Step("workers", "{} EASGD workers".format(many), _train(machine, dict(values, **{"strategy.name": "easgd", "cluster.workers": many})), 40, _read_training(None),
                 judge=judge_many, goal="at least 0.95 of one worker")]


# ---- PyTorch

def _torch(part, goal, seconds, machine, cases_of_part, more=(), late=None):
    why = machine.why_no_torch("--compile" in more)
    all_steps = []
    for name, model, batch in cases_of_part:
        command = [machine.python, machine.peers.resolve() / "torch_train.py", "--models", model, "--batch", batch, "--layout", "nhwc", "--json"]
        command += ["--precision", "fp32", "--device", "cpu", "--seconds", "0.01"] if machine.on_host else ["--precision", "bf16", "--device", "cuda", "--seconds", "0.5"]

        def judge(figures, results, name=name):
            rate = figures["images_per_s"]
            text = "{:,.0f} images/s".format(rate)
            ours = next((r.figures.get("images_per_s") for r in results if (r.step.part, r.step.name, r.status) == ("speed", name, "ok")), None)
            if not ours:
                return text, None
            figures["troupe_by_torch"] = ours / rate
            return "{}; troupe {:.2f} of it".format(text, ours / rate), None if machine.on_host else ours >= goal * rate

        all_steps.append(Step(part, name, command + list(more), seconds, _read_line("images_per_s", "ms_per_step", "torch"), why, judge=judge,
                              goal="troupe at least {} of it".format(goal), late=late))
    return all_steps


def _torch_eager(machine):
    return _torch("torch_eager", 1.15, 40, machine, _cases(machine))


def _torch_compile(machine):
    # max-autotune tries kernels for every shape of a layer: what has the fewest shapes comes first. resnet50 took more than 142 s on an H200.
    order = ["alexnet", "vgg16", "resnet50", "googlenet"]
    cases_of_part = _cases(machine)
    if not machine.on_host:
        cases_of_part.sort(key=lambda case: (-case[2], order.index(case[1])))
    return _torch("torch_compile", 1.0, 300, machine, cases_of_part, ["--compile"], "still compiling after {:.0f} s")
