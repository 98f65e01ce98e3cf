#!/usr/bin/env bash
# Vectors that take longer than any deadline: two hosts (network namespaces) joined by a link so slow that a copy of the model is on its way for
# more than a minute. The coordinator is on host 1 and asks worker 0, on host 2, for the model; the other worker is on host 1. No worker may be lost.
#   bsp, 20.0 million parameters, 10 Mbit/s      64 s a vector
#   bsp, 5.8 million parameters, 3 Mbit/s        62 s
#   gossip, 5.8 million parameters, 3 Mbit/s     62 s
# A run trains two batches of each worker, and evaluates and saves the model at its beginning and end. The last line is JSON: by run, how it ended, the
# workers that were lost, samples trained, seconds. Root only; leaves nothing behind; takes about half an hour, nearly all of it waiting.
#
#   bench/slow_link.sh [RUN …]        default: bsp-20 bsp-5.8 gossip-5.8
#
# BIN: where the program is (default build/bin).
set -euo pipefail
cd "$(dirname "$0")/.."
[[ ${1:-} != -* ]] || { sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2; }
# shellcheck source=SCRIPTDIR/hosts.sh
source bench/hosts.sh
enter_namespaces "$@"
troupe=$(realpath "${BIN:-build/bin}")/troupe
make_certificates "$troupe"
join_hosts
runs=("$@")
[[ ${#runs[@]} -gt 0 ]] || runs=(bsp-20 bsp-5.8 gossip-5.8)

port=7200
for run in "${runs[@]}"; do
  case $run in
    *-20) widths=4096 rate=10mbit ;;
    *-5.8) widths=2048 rate=3mbit ;;
    *) echo "$run: bsp-20, bsp-5.8 or gossip-5.8" >&2; exit 2 ;;
  esac
  port=$((port + 1))
  start_nodes "$troupe" $port
  limit_link $rate 64kb
  began=$SECONDS
  rc=0
  on_host 1 "$troupe" train configs/glyphs-easgd.toml --nodes "10.0.0.2:$port,10.0.0.1:$port" --ca "$certs/ca.pem" --cert "$certs/host1.pem" \
    --key "$certs/host1.key" --plain --json --set "run.dir=\"$scratch/runs\"" --set run.epochs=1 --set data.train_samples=64 --set data.batch=16 \
    --set cluster.workers=2 --set cluster.threads_per_worker=1 --set model.name=mlp --set "model.widths=[$widths,$widths]" \
    --set exchange.algorithm=asa --set "strategy.name=${run%-*}" > "$scratch/$run.json" 2> "$scratch/$run.log" || rc=$?
  limit_link none
  lost=$(grep -c ' is lost' "$scratch/$run.log" || true)
  echo "$run: exit code $rc, workers lost: $lost, $((SECONDS - began)) s"
  [[ $rc == 0 ]] || tail -5 "$scratch/$run.log" >&2
  printf '%s %s %s %s\n' "$run" "$rc" "$lost" "$((SECONDS - began))" >> "$scratch/results"
  stop_nodes
done

python3 - "$scratch" <<'PY'
import json, os, sys
scratch = sys.argv[1]
results = {}
for line in open(f'{scratch}/results'):
    run, rc, lost, seconds = line.split()
    path = f'{scratch}/{run}.json'
    samples = json.load(open(path))['samples'] if os.path.getsize(path) else None
    results[run] = {'exit_code': int(rc), 'lost': int(lost), 'samples': samples, 'seconds': int(seconds)}
print(json.dumps(results))
PY
