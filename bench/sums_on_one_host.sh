#!/usr/bin/env bash
# bsp over processes of this host, by asa, which copies through the shm endpoint, and by shm, where workers sum in each other's memory: samples per second
# of training, and the milliseconds of a step that a worker spends on exchanges and on waiting. They take turns; the median of the rounds counts, with the
# range behind it, because the machine is shared. Both must come to the same model. The model is wide and its batches small, so that sums matter.
#
#   bench/sums_on_one_host.sh [NODES [ROUNDS]]        default 2 nodes, 5 rounds
#
# BIN: where the program is (default build/bin).  WIDTHS: of the layers (default 2048,2048,2048).  BATCH: samples of a batch (default 16).
set -euo pipefail
cd "$(dirname "$0")/.."
[[ ${1:-} != -* ]] || { sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2; }
nodes=${1:-2}
rounds=${2:-5}
troupe=$(realpath "${BIN:-build/bin}")/troupe
scratch=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2> /dev/null || true; wait; rm -rf "$scratch"' EXIT

list=()
for ((k = 0; k < nodes; ++k)); do
  (cd "$scratch" && exec "$troupe" node --listen 127.0.0.1:0 2> "$scratch/node$k") &
  pids+=($!)
done
for ((k = 0; k < nodes; ++k)); do
  until grep -q 'listens on' "$scratch/node$k"; do kill -0 "${pids[k]}"; sleep 0.05; done
  list+=("$(sed -n 's/.*listens on \([^ ,]*\).*/\1/p' "$scratch/node$k")")
done
echo "load average: $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) cores"

python3 - "$troupe" "$(IFS=,; echo "${list[*]}")" "$nodes" "$rounds" "$scratch" "${WIDTHS:-2048,2048,2048}" "${BATCH:-16}" <<'PY'
import json, statistics, subprocess, sys
troupe, nodes, workers, rounds, scratch, widths, batch = sys.argv[1:]
config = f'{scratch}/config.toml'
steps = 60  # of each worker
with open(config, 'w') as file:
    file.write(f'[run]\nepochs = 1\njournal = "off"\ncheckpoint_every = "never"\n[model]\nname = "mlp"\nwidths = [{widths}]\n'
               f'[data]\nname = "glyphs"\nbatch = {batch}\ntrain_samples = {steps * int(batch) * int(workers)}\ntest_samples = 100\n'
               f'[strategy]\nname = "bsp"\n[cluster]\nworkers = {workers}\n')

def run(algorithm, number):
    out = subprocess.run([troupe, 'train', config, '--nodes', nodes, '--quiet', '--json', '--set', f'run.dir={scratch}/{algorithm}{number}',
                          '--set', f'exchange.algorithm={algorithm}'], check=True, capture_output=True, text=True).stdout
    return json.loads(out)

algorithms = ('asa', 'shm')
runs = {algorithm: [] for algorithm in algorithms}
for number in range(int(rounds)):
    for algorithm in algorithms:
        runs[algorithm].append(run(algorithm, number))
if len({one['center_hash'] for all in runs.values() for one in all}) != 1:
    sys.exit('the runs did not come to the same model')

result = {}
for algorithm, all in runs.items():
    speed = sorted(one['train']['images_per_s'] for one in all)
    away = sorted(1e3 * (one['time']['exchange_s'] + one['time']['wait_s']) / steps for one in all)
    row = {'images_per_s': statistics.median(speed), 'exchange_ms': statistics.median(away), 'bytes': all[0]['exchange']['bytes']}
    print(f'{algorithm}  {row["images_per_s"]:8.1f} images/s ({speed[0]:.1f} to {speed[-1]:.1f})   exchange and waiting '
          f'{row["exchange_ms"]:7.2f} ms per step ({away[0]:.2f} to {away[-1]:.2f})   {row["bytes"]} bytes over the endpoint')
    result[algorithm] = row
print(json.dumps(result | {'shm_over_asa': result['shm']['images_per_s'] / result['asa']['images_per_s']}))
PY
