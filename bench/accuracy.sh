#!/usr/bin/env bash
# Test accuracy on MNIST at the shipped configurations: lenet with every strategy on three seeds, and the Blue Gene perceptron.
# Also prints each run's peak memory.
#
#   bench/accuracy.sh MNIST_DIRECTORY [CONFIG…]      WORKERS: instead of the configuration's two
set -euo pipefail
cd "$(dirname "$0")/.."
[[ $# -ge 1 ]] || { sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 2; }
troupe=${TROUPE:-build/bin/troupe}
data=$1
shift
configs=("$@")
[[ ${#configs[@]} -gt 0 ]] || configs=(mnist-bsp mnist-easgd mnist-eamsgd mnist-sync_easgd mnist-downpour mnist-ssp mnist-local_sgd mnist-diloco mnist-mixed mnist-gossip mnist-pairs mnist-mlp)
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT

for config in "${configs[@]}"; do
  seeds="1 2 3"
  [[ $config != mnist-mlp ]] || seeds="1"
  for seed in $seeds; do
    python3 - "$troupe" "configs/$config.toml" "$data" "$runs" "$seed" "${WORKERS:-}" <<'PY'
import json, resource, subprocess, sys
troupe, config, data, runs, seed, workers = sys.argv[1:]
more = ['--set', f'cluster.workers={workers}'] if workers else []
out = subprocess.run([troupe, 'train', config, '--json', '--quiet', '--set', f'data.path="{data}"', '--set', f'run.dir="{runs}"',
                      '--set', f'run.seed={seed}'] + more, check=True, capture_output=True, text=True).stdout
s = json.loads(out)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(f"{config:29s} {s['workers']} workers, seed {seed}  accuracy {100 * s['test']['accuracy']:.2f} %  {s['train']['images_per_s']:9.0f} images/s  "
      f"{s['epochs']} epochs in {s['wall_s']:.0f} s  peak memory {peak:.0f} MiB", flush=True)
PY
  done
done
