#!/usr/bin/env bash
# Adapters beside all parameters, over a slow link: examples/lora.py on two hosts (network namespaces) joined by RATE each way, a worker on each, batch 16, one
# thread each. A GPT of 260,736 parameters has learnt Debian's texts; then it learns the sources of Python's standard library, 2,226 windows of 128 bytes:
#   adapters   --rank 4: 12,288 parameters are trained and exchanged
#   all        --rank 0: all parameters are trained and exchanged
# each with bsp (an exchange in every step) and with diloco, tau 16. Prints a row for each run: parameters exchanged, payload of an exchange, all bytes that
# the link carried, samples/s without evaluations, test loss at the end; and draws the loss over samples and over seconds. What limits it: the link. An exchange
# puts 4 bytes a parameter on it, each way. Root only; leaves nothing behind but BASE and the picture.
#
#   bench/guests/lora_link.sh BASE      BASE: the file of the trained GPT; if it is missing, the GPT is trained first (a minute or more)
#
# RATE: as tc writes it (default 10mbit). OUTPUT: where the picture goes (default docs/figures). FORMAT: svg or png (default svg). BYTES: of Python's sources (default 300000).
# PYTHON: with numpy and torch (default /usr/bin/python3). BIN: where the program is (default build/bin).
set -euo pipefail
cd "$(dirname "$0")/../.."
[[ $# == 1 && $1 != -* ]] || { sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 2; }
# shellcheck source=SCRIPTDIR/../hosts.sh
source bench/hosts.sh
# shellcheck source=SCRIPTDIR/../peers.sh
source bench/peers.sh
base=$(realpath -m "$1")
python=${PYTHON:-/usr/bin/python3}
troupe=$(realpath "${BIN:-build/bin}")/troupe
output=${OUTPUT:-docs/figures}
format=${FORMAT:-svg}
rate=${RATE:-10mbit}
shape=(--layers 2 --width 96 --heads 4 --batch 16)
[[ ${TROUPE_BENCH_INSIDE:-} ]] || torch_gflops "$python" > /dev/null || true  # it says what is slow; nothing is compared with PyTorch here
# text WHOSE BYTES: once, for all processes.
text() {
  PYTHONPATH=examples:python "$python" -c 'import sys, lora; sys.stdout.buffer.write(getattr(lora, sys.argv[1])(int(sys.argv[2])))' "$1" "$2"
}
if [[ ! -e $base ]]; then
  log=$(mktemp)
  text debian_text 800000 > "$log.text"
  "$troupe" launch --workers 2 --strategy easgd --plain --set model.start_s=500 --set "run.dir=$log.runs" --set run.checkpoint_every=never -- \
    "$python" examples/lora.py --base "$base" --train "${shape[@]}" --text "$log.text" > "$log" 2>&1 ||
    { cat "$log" >&2; rm -rf "$log" "$log.runs" "$log.text"; exit 1; }
  grep 'test loss' "$log"
  rm -rf "$log" "$log.runs" "$log.text"
fi
enter_namespaces "$base"
make_certificates "$troupe"
join_hosts
limit_link "$rate" 64kb
text python_text "${BYTES:-300000}" > "$scratch/text"
echo "two hosts, $rate each way; load average: $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) cores"
echo
echo "| trained | strategy | parameters | bytes of an exchange | on the link in all | samples/s | test loss |"
echo "|-|-|-|-|-|-|-|"

port=7300
run() {  # NAME RANK STRATEGY SETTING…
  local name=$1 rank=$2 strategy=$3 settings=() setting before
  shift 3
  for setting in "$@"; do settings+=(--set "$setting"); done
  port=$((port + 1))
  start_nodes "$troupe" $port --programs
  before=$(($(link_bytes 1) + $(link_bytes 2)))
  on_host 1 "$troupe" launch --nodes "10.0.0.1:$port,10.0.0.2:$port" --ca "$certs/ca.pem" --cert "$certs/host1.pem" --key "$certs/host1.key" \
    --workers 2 --strategy "$strategy" --quiet --json --set "run.name=$name" --set "run.dir=$scratch/runs" --set run.checkpoint_every=never \
    --set model.start_s=500 --set cluster.threads_per_worker=1 --set "run.evaluate_every=40 steps" "${settings[@]}" -- \
    "$python" examples/lora.py --base "$base" --rank "$rank" "${shape[@]}" --text "$scratch/text" > "$scratch/$name.json" 2> "$scratch/$name.log" ||
    { cat "$scratch/$name.log" >&2; exit 1; }
  "$python" - "$scratch" "$name" "$rank" $(($(link_bytes 1) + $(link_bytes 2) - before)) <<'PY'
import json, sys
scratch, name, rank, carried = sys.argv[1:]
run = json.load(open(f'{scratch}/{name}.json'))
started = next(line for line in map(json.loads, open(f"{run['run']}/metrics.jsonl")) if line['kind'] == 'started')
exchange = run['exchange']
print(f"| {'all' if rank == '0' else 'adapters'} | {name.split('-', 1)[1].replace('-', ' ')} | {started['parameters']:,} | {exchange['bytes'] / exchange['count']:,.0f} "
      f"| {int(carried) / 1e6:.1f} MB | {run['train']['images_per_s']:.1f} | {run['test']['loss']:.3f} |", flush=True)
# The worker of host 1 may be beside the servers: half of what the workers exchange crosses the link.
if int(carried) < exchange['bytes'] / 2:
    sys.exit(f"the link carried {carried} bytes: less than half of {exchange['bytes']}: the hosts found another way")
PY
  stop_nodes
}

run adapters-bsp 4 bsp
run all-bsp 0 bsp
run adapters-diloco-tau-16 4 diloco strategy.tau=16
run all-diloco-tau-16 0 diloco strategy.tau=16
runs=("$scratch"/runs/*-adapters-bsp "$scratch"/runs/*-all-bsp "$scratch"/runs/*-adapters-diloco-tau-16 "$scratch"/runs/*-all-diloco-tau-16)
"$troupe" plot "${runs[@]}" --over samples,seconds --format "$format" --output "$scratch/plots" > /dev/null
mkdir -p "$output"
cp "$scratch/plots/loss.$format" "$output/guests-lora.$format"
echo
echo "$output/guests-lora.$format"
