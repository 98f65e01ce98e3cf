#!/usr/bin/env bash
# What a program of the user's pays for being a worker (docs/guests.md), beside PyTorch alone and DistributedDataParallel over Gloo:
#   1. one worker with easgd, tau 16, beside the same script without Troupe, one thread: the share of its speed that is left
#   2. run.step without an exchange, of a program that computes nothing
#   3. two workers with bsp beside two processes of DDP, and with easgd, one thread each
# What limits it: (1) an exchange reads and writes the parameters twice, P x 16 bytes at memory speed every 16 steps; (2) two frames over a
# Unix socket, two wake-ups; (3) bsp and DDP both wait for the slower process and sum P x 4 bytes in each step.
# Each way runs ROUNDS times (default 3), the ways in turn; the best of each counts, because machines are shared.
#
#   bench/guests.sh [mnist|gpt|step]...     default: all
#
# PYTHON (default /usr/bin/python3) must have torch and numpy. TROUPE is the program (default build/bin/troupe).
set -euo pipefail
cd "$(dirname "$0")/.."
[[ "${1:-}" != -* ]] || { sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 2; }
# shellcheck source=SCRIPTDIR/peers.sh
source bench/peers.sh
python=${PYTHON:-/usr/bin/python3}
troupe=${TROUPE:-build/bin/troupe}
[[ -x $troupe ]] || { echo "no program at $troupe: run scripts/build, or set TROUPE" >&2; exit 2; }
"$python" -c 'import torch, numpy' 2>/dev/null || { echo "$python has no torch and numpy (PYTHON names another one)" >&2; exit 2; }
torch_gflops "$python" >/dev/null
what=("$@")
[[ ${#what[@]} -gt 0 ]] || what=(step mnist gpt)

"$python" - "$troupe" "$python" "${ROUNDS:-3}" "${what[@]}" <<'PY'
import json, os, re, subprocess, sys, tempfile
troupe, python, rounds, *what = sys.argv[1:]
SIZES = {'mnist': (64, 400), 'gpt': (4, 40)}  # batch, steps of a process
scratch = tempfile.TemporaryDirectory()
environment = {**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONPATH': os.path.abspath('python')}


def lines(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, env={**environment, **more}, timeout=600)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr[-2000:]}")
    return [json.loads(text) for text in re.findall(r'\{"samples_per_s.*?\}', done.stdout + done.stderr)]


def script(way, model, workers=1):
    batch, steps = SIZES[model]
    return [python, 'bench/guests/steps.py', way, model, '--steps', str(steps), '--batch', str(batch), '--workers', str(workers)]


def launched(model, workers, strategy, *settings):
    sets = [word for setting in settings for word in ('--set', setting)]
    found = lines([troupe, 'launch', '--workers', str(workers), '--strategy', strategy, '--plain', '--set', f'run.dir={scratch.name}',
                   *sets, '--', *script('joined', model, workers)])
    return sum(row['samples_per_s'] for row in found)


def ddp(model, port):
    processes = [subprocess.Popen(script('ddp', model), stdout=subprocess.PIPE, text=True, env={
        **environment, 'RANK': str(rank), 'WORLD_SIZE': '2', 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(port)}) for rank in range(2)]
    return sum(json.loads(process.communicate(timeout=600)[0])['samples_per_s'] for process in processes)


def best(ways):
    found = {name: [] for name in ways}
    for round in range(int(rounds)):
        for name, way in ways.items():
            found[name].append(way(round))
    return {name: max(values) for name, values in found.items()}


for model in what:
    if model == 'step':
        program = os.path.join(scratch.name, 'nothing.py')
        with open(program, 'w') as file:
            file.write('''import time, numpy, troupe
params = {"w": numpy.zeros(1000, numpy.float32)}
run = troupe.join(params=params, step=lambda params, gradients, factor=1.0: None)
gradients, times = {"w": numpy.zeros(1000, numpy.float32)}, []
for batch in run.batches(100000, 10):
    before = time.perf_counter()
    run.step(0.5, gradients)
    times.append(time.perf_counter() - before)
if times:
    times = sorted(times[100:])
    print('{"samples_per_s": 0, "median_us": %.1f, "mean_us": %.1f}' % (1e6 * times[len(times) // 2], 1e6 * sum(times) / len(times)))
''')
        rows = [lines([troupe, 'launch', '--workers', '1', '--strategy', 'easgd', '--plain', '--set', 'strategy.tau=1000000', '--set',
                       f'run.dir={scratch.name}', '--', python, program])[0] for _ in range(int(rounds))]
        row = min(rows, key=lambda row: row['median_us'])
        print(f"run.step without an exchange: median {row['median_us']} us, mean {row['mean_us']} us (goal: at most 50)")
        continue
    one = best({'plain': lambda round: lines(script('plain', model))[0]['samples_per_s'],
                'joined': lambda round: launched(model, 1, 'easgd', 'strategy.tau=16')})
    print(f"{model}, one worker: PyTorch alone {one['plain']:,.0f} samples/s, easgd tau 16 {one['joined']:,.0f}: "
          f"{100 * one['joined'] / one['plain']:.1f} % (goal: at least 98)", flush=True)
    two = best({'ddp': lambda round: ddp(model, 29500 + round), 'bsp': lambda round: launched(model, 2, 'bsp'),
                'easgd': lambda round: launched(model, 2, 'easgd', 'strategy.tau=16')})
    print(f"{model}, two workers: DDP over Gloo {two['ddp']:,.0f} samples/s, bsp {two['bsp']:,.0f} ({two['bsp'] / two['ddp']:.2f}x), "
          f"easgd tau 16 {two['easgd']:,.0f} ({two['easgd'] / two['ddp']:.2f}x)", flush=True)
PY
