#!/usr/bin/env bash
# Training of the papers' networks beside PyTorch, in one run on this machine: forward, loss, backward and momentum on a batch in memory,
# one thread. Ours and PyTorch's layouts in turn; the best of ROUNDS counts, because machines are shared and noisy. What limits it: the
# arithmetic of convolutions, of which 3x3 ones have a quarter with Winograd's algorithm. Prints images/s, the ratio to the best that
# PyTorch reaches (fp32: of its layouts; bf16: of all precisions and layouts), peak memory of both processes, and geometric means.
#
#   bench/networks.sh [fp32|bf16|both] [MODEL...]     default: both, alexnet_torch googlenet_torch resnet18 resnet50 vgg16
#
# PEERS (default ../shared/peers) is a folder with torch_train.py; PYTHON (default /usr/bin/python3) must have torch. Without either, only
# Troupe's columns are printed. TROUPE is the program (default build/bin/troupe). SECONDS_EACH: length of a timed window (default 1, of
# three). ROUNDS: default 1. CORE: pins every process to this core; default: none.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ "${1:-}" != -* ]] || { sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2; }
# shellcheck source=SCRIPTDIR/peers.sh
source bench/peers.sh

precisions=${1:-both}
shift || true
[[ $precisions != both ]] || precisions="fp32 bf16"
models=("$@")
[[ ${#models[@]} -gt 0 ]] || models=(alexnet_torch googlenet_torch resnet18 resnet50 vgg16)
peers=${PEERS:-../shared/peers}
python=${PYTHON:-/usr/bin/python3}
troupe=${TROUPE:-build/bin/troupe}
[[ -x $troupe ]] || { echo "no program at $troupe: run scripts/build, or set TROUPE" >&2; exit 2; }
if [[ ! -f $peers/torch_train.py ]]; then
  echo "no torch_train.py in $peers (PEERS names its folder): PyTorch is left out"
  peers=""
elif ! "$python" -c 'import torch, torchvision' 2>/dev/null; then
  echo "$python has no torch and torchvision (PYTHON names another one): PyTorch is left out"
  peers=""
else
  torch_gflops "$python" >/dev/null
fi

"$python" - "$troupe" "$peers" "$precisions" "${CORE:-}" "${SECONDS_EACH:-1}" "${ROUNDS:-1}" "${models[@]}" <<'PY'
import json, math, os, resource, subprocess, sys
troupe, peers, precisions, core, seconds, rounds, *models = sys.argv[1:]
BATCH = {'alexnet_torch': 32, 'googlenet_torch': 16, 'resnet18': 16, 'resnet50': 8, 'vgg16': 8, 'lenet': 64, 'cifar': 64, 'mlp': 64}


def run(command):
    """The last line of the output as JSON, and the process's peak memory in MiB."""
    command = (['taskset', '-c', core] if core else []) + command
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, error = child.stdout.read(), child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)}: {error.strip() or status}")
    return json.loads(out.strip().splitlines()[-1]), usage.ru_maxrss / 1024


def ours(model, precision):
    row, memory = run([troupe, 'bench', 'step', '--model', model, '--batch', str(BATCH[model]), '--precision', precision,
                       '--seconds', seconds, '--json'])
    return row['images_per_s'], memory


def theirs(model, precision, layout):
    row, memory = run([sys.executable, f'{peers}/torch_train.py', '--models', model.removesuffix('_torch'), '--precision', precision,
                       '--layout', layout, '--seconds', seconds, '--json'])
    return row['images_per_s'], memory


for model in models:
    if model not in BATCH:
        sys.exit(f'{model}: one of {" ".join(BATCH)}')
theirs_best = {}
for precision in precisions.split():
    ratios = []
    for model in models:
        rate, memory = 0.0, 0.0
        cells = {}
        for _ in range(int(rounds)):
            r, memory = ours(model, precision)
            rate = max(rate, r)
            for layout in ('nchw', 'nhwc') if peers else ():
                r, m = theirs(model, precision, layout)
                if r > cells.get(layout, (0, 0))[0]:
                    cells[layout] = (r, m)
        line = f'{model:16} batch {BATCH[model]:<3} {precision}  troupe {rate:9.2f} images/s {memory:6.0f} MiB'
        if peers:
            best, their_memory = max(cells.values())
            theirs_best[model] = max(best, theirs_best.get(model, 0))
            ratios.append(rate / theirs_best[model])
            line += '   torch ' + '  '.join(f'{layout} {r:9.2f} ({m:.0f} MiB)' for layout, (r, m) in cells.items())
            line += f'   ratio {ratios[-1]:.2f}'
        print(line, flush=True)
    if ratios:
        print(f'{precision}: geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, least {min(ratios):.2f}', flush=True)
PY
