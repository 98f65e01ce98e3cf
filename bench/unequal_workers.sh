#!/usr/bin/env bash
# Three workers of which one is slower, beside three equal ones: images/s of training for bsp, ssp, easgd and downpour at slowdowns 1, 2, 4, 8 of the
# third. What limits it: asynchronous strategies lose the third worker's missing share only, (1 + 1 + 1/k) / 3; bulk-synchronous ones go at 1/k.
# A synthetic step of 20 ms (the workers sleep for the rest) makes the figures independent of the number of cores.
#
#   bench/unequal_workers.sh [STEPS_PER_WORKER]        TROUPE: the program (default build/bin/troupe)
set -euo pipefail
cd "$(dirname "$0")/.."
troupe=${TROUPE:-build/bin/troupe}
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT

python3 - "$troupe" "$runs" "${1:-150}" <<'PY'
import json, subprocess, sys
troupe, runs, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
print('strategy   slowdown  images/s   of equal workers   ideal   longest wait')
for strategy in ('bsp', 'ssp', 'easgd', 'downpour'):
    equal = None
    for k in (1, 2, 4, 8):
        out = subprocess.run([troupe, 'train', 'configs/glyphs-easgd.toml', '--quiet', '--json', '--set', f'run.dir="{runs}"', '--set', 'run.epochs=1', '--set', 'run.checkpoint_every="never"',
                              '--set', 'model.name=mlp', '--set', 'data.batch=16', '--set', f'data.train_samples={16 * 3 * steps}', '--set', 'data.test_samples=100',
                              '--set', f'strategy.name={strategy}', '--set', 'strategy.s=3', '--set', 'strategy.tau=4', '--set', 'train.lr=0.01', '--set', 'cluster.workers=3',
                              '--set', 'cluster.synthetic_step_ms=20', '--set', f'cluster.slowdown=[1, 1, {k}]', '--set', 'data.prefetch=1'],
                             check=True, capture_output=True, text=True).stdout
        s = json.loads(out)
        speed = s['train']['images_per_s']
        equal = equal or speed
        ideal = 1 / k if strategy in ('bsp', 'ssp') else (2 + 1 / k) / 3
        waits = s['waits']['seconds']
        worst = max(((t, w, c) for w, row in enumerate(waits) for c, t in enumerate(row)))
        name = lambda c: f'worker {c}' if c < 3 else f'server {c - 3}'
        print(f'{strategy:9s} {k:8d} {speed:10.0f} {speed / equal:18.3f} {ideal:7.3f}   ' + (f'worker {worst[1]} for {name(worst[2])}: {worst[0]:.2f} s' if worst[0] > 0.05 else ''), flush=True)
PY
