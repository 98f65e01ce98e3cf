#!/usr/bin/env bash
# Nodes on this host: what an idle one costs, and how long `train --nodes` takes to the first step. What limits it: an idle node sleeps but for a heartbeat per
# second and connection; a start connects, opens the data set once per node, compiles a replica per worker and saves a checkpoint before the first step.
# The time to the first step is that to the first progress in metrics.jsonl, looked at every 10 ms: an upper bound.
#
#   bench/nodes.sh [NODES [SECONDS]]        default 4 nodes, idle for 20 s
#
# BIN: where the program is (default build/bin).  CONFIG: what is trained (default configs/glyphs-easgd.toml).
set -euo pipefail
cd "$(dirname "$0")/.."
[[ ${1:-} != -* ]] || { sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2; }
nodes=${1:-4}
idle=${2:-20}
troupe=$(realpath "${BIN:-build/bin}")/troupe
config=$(realpath "${CONFIG:-configs/glyphs-easgd.toml}")
scratch=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2> /dev/null || true; wait; rm -rf "$scratch"' EXIT

list=()
for ((k = 0; k < nodes; ++k)); do
  "$troupe" node --listen 127.0.0.1:0 2> "$scratch/node$k" &
  pids+=($!)
done
for ((k = 0; k < nodes; ++k)); do
  until grep -q 'listens on' "$scratch/node$k"; do kill -0 "${pids[k]}"; sleep 0.05; done
  list+=("$(sed -n 's/.*listens on \([^ ,]*\).*/\1/p' "$scratch/node$k")")
done

ticks() { local sum=0 t; for p in "${pids[@]}"; do t=$(awk '{print $14 + $15}' "/proc/$p/stat"); sum=$((sum + t)); done; echo "$sum"; }
before=$(ticks)
sleep "$idle"
after=$(ticks)
awk -v t=$((after - before)) -v hz="$(getconf CLK_TCK)" -v n="$nodes" -v s="$idle" \
  'BEGIN { printf "idle node: %.2f %% of a core (%d nodes, %d s)\n", 100 * t / hz / n / s, n, s }'

for round in 1 2 3; do
  began=$(date +%s%N)
  (cd "$scratch" && exec "$troupe" train "$config" --set cluster.workers="$nodes" --set run.epochs=1 --set run.dir="r$round" --nodes "$(IFS=,; echo "${list[*]}")" --quiet) &
  train=$!
  until grep -Eqs '"kind":"worker".*"steps":[1-9]' "$scratch/r$round"/*/metrics.jsonl; do kill -0 $train; sleep 0.01; done
  ended=$(date +%s%N)
  awk -v ns=$((ended - began)) -v n="$nodes" 'BEGIN { printf "first step of %d workers on as many nodes: %.2f s\n", n, ns / 1e9 }'
  wait $train
done
