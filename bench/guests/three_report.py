"""The report of bench/three_machines.sh from its folder of results: a line for each part that has results, then a line of JSON.

    three_report.py FOLDER               the report
    three_report.py FOLDER --expected    samples per second that a run of the three machines can be expected to reach

docs/guests/three-machines.md defines each figure.
"""
import glob
import json
import os
import sys

HOSTS = (1, 2, 3)
WARM_UP = 4  # steps of a script that do not count
folder = sys.argv[1]


def path(name):
    return os.path.join(folder, name)


def json_of(name):
    """The last line of a file that is there and whole, as JSON."""
    try:
        with open(path(name)) as file:
            return json.loads(file.read().strip().splitlines()[-1])
    except (OSError, IndexError, ValueError):
        return None


class Script:
    """What bench/guests/three_ways.py printed on one host."""

    def __init__(self, name):
        self.began, self.steps, self.loss = None, [], None
        with open(path(name)) as file:
            for words in map(str.split, file):
                if words[0] == "started":
                    self.began = float(words[1])
                elif words[0] == "loss":
                    self.loss = float(words[1])
                elif len(words) == 2:
                    self.steps.append((float(words[0]), int(words[1])))

    def rate(self, first=0.0, last=float("inf")):
        """Samples per second of the steps in this time, after the warm-up."""
        steps = [(at, done) for at, done in self.steps[WARM_UP:] if first <= at <= last]
        return (steps[-1][1] - steps[0][1]) / (steps[-1][0] - steps[0][0]) if len(steps) > 1 else 0.0

    def start_s(self):
        """From its process's start to its first batch."""
        return self.steps[0][0] - self.began


def scripts(name):
    """By host; none if one is missing."""
    if not all(os.path.exists(path(f"{name}-{host}")) for host in HOSTS):
        return None
    found = {host: Script(f"{name}-{host}") for host in HOSTS}
    return found if all(len(script.steps) > WARM_UP + 1 for script in found.values()) else None


def rates_at_once(found):
    """Of scripts that ran at the same time: their rates while all of them did."""
    first = max(script.steps[WARM_UP][0] for script in found.values())
    last = min(script.steps[-1][0] for script in found.values())
    return {host: script.rate(first, last) for host, script in found.items()}


class Trained:
    """A run's samples, and its seconds from the first lease to the last step's report, pauses included."""

    def __init__(self, name):
        self.summary = json_of(f"{name}.json")
        directories = glob.glob(path(f"{name}/*/metrics.jsonl"))
        self.whole = bool(self.summary and directories)
        if not self.whole:
            return
        with open(directories[0]) as file:
            lines = [json.loads(line) for line in file]
        self.lines = lines
        started = next(line["t"] for line in lines if line["kind"] == "started")
        self.seconds = max(line["t"] for line in lines if line["kind"] == "worker") - started
        self.samples = self.summary["samples"]
        self.rate = self.samples / self.seconds


def events_of(name):
    """[(time, what, host or None)]"""
    try:
        with open(path(f"{name}.events")) as file:
            return [(float(words[0]), words[1], int(words[2]) if len(words) > 2 else None) for words in map(str.split, file)]
    except OSError:
        return []


def at(events, what):
    return next((time for time, name, _ in events if name == what), None)


solo, together = scripts("solo"), scripts("together")
reference = rates_at_once(together) if together else {host: script.rate() for host, script in solo.items()} if solo else None
capacity = sum(reference.values()) if reference else None
clean, probe, faults = Trained("clean"), Trained("probe"), Trained("faults")

if "--expected" in sys.argv:
    if probe.whole:
        print(probe.summary["train"]["images_per_s"])
    elif capacity:
        print(0.9 * capacity)
    else:
        sys.exit("run the part solo first")
    sys.exit(0)

result = {}


def say(key, value, text):
    result[key] = value
    print(text)


def per_host(rates):
    return " + ".join(f"{rates[host]:.1f}" for host in HOSTS)


if solo:
    alone = {host: script.rate() for host, script in solo.items()}
    say("solo", alone, f"script alone, host after host    {per_host(alone)} = {sum(alone.values()):.1f} samples/s")
if together:
    say("together", reference, f"script alone, all at once        {per_host(reference)} = {capacity:.1f} samples/s: the sum that counts below")
if clean.whole and capacity:
    share = clean.rate / capacity
    say("clean", share, f"clean run                        {clean.rate:.1f} samples/s: {100 * share:.1f} % of the sum (asked: 90 %); by host "
        + ", ".join(f"{100 * worker['samples'] / clean.seconds / reference[host]:.1f} %" for host, worker in zip(HOSTS, clean.summary["per_worker"])))
forecast = json_of("forecast.json")
if forecast and clean.whole:
    seen, told = clean.summary["train"]["images_per_s"], forecast["train"]["images_per_s"]
    say("forecast", told / seen - 1, f"forecast, made before            {told:.1f} samples/s, measured {seen:.1f}: {100 * (told / seen - 1):+.1f} % (asked: 10 %)")
events = events_of("faults")
if faults.whole and capacity and at(events, "killed"):
    began = at(events, "began")
    late, stopped, continued = (at(events, what) - began for what in ("late", "stopped", "continued"))
    starts = {host: script.start_s() for host, script in solo.items()} if solo else dict.fromkeys(HOSTS, 0.0)
    away = {1: starts[1], 2: continued - stopped, 3: late + starts[3]}
    there = sum(reference[host] * (faults.seconds - away[host]) for host in HOSTS)
    raw, kept = faults.samples / (capacity * faults.seconds), faults.samples / there
    say("faults_raw", raw, f"run with faults                  {faults.rate:.1f} samples/s for {faults.seconds:.1f} s: {100 * raw:.1f} % of the sum")
    text = f"  of what was there              {100 * kept:.1f} %; away were " + ", ".join(f"host {host} {away[host]:.1f} s" for host in HOSTS)
    if clean.whole:
        result["faults_of_clean"] = kept / (clean.rate / capacity)
        text += f"; {100 * result['faults_of_clean']:.1f} % of the clean run's share (asked: 97.7 %)"
    say("faults", kept, text)
elif events and faults.whole:
    print("run with faults                  it ended before all faults: make it longer (SECONDS_OF_RUN)")
for name, what in (("ddp", "DDP over Gloo"), ("local", "post-local SGD")):
    found = scripts(name)
    if found:
        rate = sum(rates_at_once(found).values())
        text = f"{what:33s}{rate:.1f} samples/s"
        if clean.whole:
            result[f"over_{name}"] = clean.rate / rate
            text += f": the clean run has {clean.rate / rate:.1f} times that" + (" (asked: 10)" if name == "ddp" else "")
        say(name, rate, text)
    events = events_of(f"{name}-faults")
    if at(events, "killed"):
        done = sum(Script(f"{name}-faults-{host}").steps[-1][1] for host in HOSTS)
        end = max(Script(f"{name}-faults-{host}").steps[-1][0] for host in HOSTS)
        how = "the others hang" if at(events, "hangs") else "all processes end"
        say(f"{name}_faults", done, f"  with the faults                {done} samples in {end - at(events, 'began'):.1f} s; then {how} and nothing is kept")
if os.path.exists(path("loss")) and clean.whole:
    theirs, ours = Script("loss").loss, clean.summary["test"]["loss"]
    text = f"test loss at equal samples       {ours:.4f}, DDP's arithmetic {theirs:.4f}: {100 * (ours / theirs - 1):+.2f} % (asked: at most +0.5 %)"
    if faults.whole:
        text += f"; with faults {faults.summary['test']['loss']:.4f}"
    say("loss", ours / theirs - 1, text)
for name in ("clean", "faults"):
    if not os.path.exists(path(f"replay-{name}.rc")):
        continue
    replayed = json_of(f"replay-{name}.json") or {}
    with open(path(f"replay-{name}.rc")) as file:
        rc = int(file.read())
    with open(path(f"replay-{name}.log")) as file:
        last = ([line.strip() for line in file if line.strip()] or [""])[-1]
    say(f"replay_{name}", rc == 0, f"replay, {name:25s}" + (
        f"{replayed.get('hashes')} hashes reached, {replayed.get('replayed')} of {replayed.get('events')} events" if rc == 0 else f"FAILED (exit code {rc}): {last}"))
print(json.dumps(result))
