#!/usr/bin/env bash
# examples/gpt.py on two equal hosts (network namespaces), joined by a link of RATE each way, a worker and one core on each:
#   ddp     DistributedDataParallel over Gloo: the gradients cross the link in every step
#   troupe  STRATEGY with an exchange every TAU steps, over all samples
#   loss    DDP's arithmetic without its link: one process with twice the batch, same text, seed and schedule
# and prints the samples/s of both, their test losses, and how long each needs for its samples. What limits them: the link. A host of DDP puts 4 bytes a
# parameter on it in each step, a worker of local_sgd as many every TAU steps (half with exchange.wire=bf16), each way. Root only; leaves nothing behind.
#
#   bench/guests/slow_link.sh      about ten minutes, on two cores with nothing else to do
#
# START: a run of the same GPT that has learnt Debian's texts: all begin with its model, and learn the sources of Python's standard library. If there is
# no such directory, that run is made first, on both cores (ten minutes). Without START all begin with random numbers and learn Debian's texts.
# RATE (100mbit), STRATEGY (local_sgd), TAU (16), SET (more --set), BYTES of text (2000000), BATCH of a host (4), LR (1e-3), SECONDS_OF_DDP (30).
# LR_OF_DDP (LR) and SAMPLES_OF_DDP (0: all): the best learning rate of each is another, and DDP may need fewer samples for the same loss.
# TROUPE: the program (build/bin/troupe). PYTHON: with torch (/usr/bin/python3). Exit code 1: a part failed.
set -euo pipefail
cd "$(dirname "$0")/../.."
[[ $# == 0 ]] || { sed -n '2,17s/^# \{0,1\}//p' "$0"; exit 2; }
# shellcheck source=SCRIPTDIR/../hosts.sh
source bench/hosts.sh
# shellcheck source=SCRIPTDIR/../peers.sh
source bench/peers.sh
python=${PYTHON:-/usr/bin/python3}
troupe=$(realpath "${TROUPE:-build/bin/troupe}")
rate=${RATE:-100mbit} strategy=${STRATEGY:-local_sgd} tau=${TAU:-16} batch=${BATCH:-4} bytes=${BYTES:-2000000} lr=${LR:-1e-3}
read -ra more <<< "${SET:-}"
shape=(--layers 2 --width 256 --heads 4 --context 48 --lr "$lr")
[[ -x $troupe ]] || skip "no program at $troupe: run scripts/build, or set TROUPE"
"$python" -c 'import torch.distributed, numpy' 2> /dev/null || skip "$python has no torch and numpy (PYTHON names another one)"
start=${START:+$(realpath -m "$START")}
debian() { PYTHONPATH=examples:python "$python" -c "import sys, $1; sys.stdout.buffer.write($1.$2($3))"; }
if [[ $start && ! -e $start ]]; then
  made=$(mktemp -d)
  debian gpt debian_text 2900000 > "$made/text"
  OMP_NUM_THREADS=1 "$troupe" launch --workers 2 --strategy bsp --quiet --json --set "run.dir=$made/runs" -- \
    "$python" examples/gpt.py "${shape[@]}" --batch 16 --text "$made/text" > "$made/run.json" || { rm -rf "$made"; exit 1; }
  mkdir -p "$(dirname "$start")"
  mv "$made"/runs/*/ "$start"
  rm -rf "$made"
fi
enter_namespaces
torch_gflops "$python" > /dev/null || exit 77
cores=$(nproc)  # before the next line, which nproc heeds
export OMP_NUM_THREADS=1 PYTHONPATH=$PWD/python GLOO_SOCKET_IFNAME=eth0 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 WORLD_SIZE=2
make_certificates "$troupe"
join_hosts
limit_link "$rate" 64kb
text=$scratch/text
if [[ $start ]]; then
  shape+=(--start "$start")
  debian lora python_text 3000000 > "$text"
else
  debian gpt debian_text 8000000 > "$text"
fi
echo "two hosts, $rate each way; load average: $(cut -d' ' -f1-3 /proc/loadavg), $cores cores"

for host in 1 2; do
  RANK=$((host - 1)) on_host $host "$python" bench/guests/three_ways.py ddp "${shape[@]}" --batch "$batch" --text "$text" --seconds "${SECONDS_OF_DDP:-30}" \
    > "$scratch/ddp-$host" 2> "$scratch/ddp-$host.err" &
done
wait
[[ -s $scratch/ddp-1 ]] || { tail -n 3 "$scratch"/ddp-?.err >&2; exit 1; }

port=7300
start_nodes "$troupe" $port --programs
settings=(--set "strategy.tau=$tau")
for setting in "${more[@]}"; do settings+=(--set "$setting"); done
carried=$(($(link_bytes 1) + $(link_bytes 2)))
on_host 1 "$troupe" launch --nodes "10.0.0.1:$port,10.0.0.2:$port" --ca "$certs/ca.pem" --cert "$certs/host1.pem" --key "$certs/host1.key" \
  --workers 2 --strategy "$strategy" --quiet --json --set "run.dir=$scratch/runs" --set run.checkpoint_every=never --set run.tensorboard=false "${settings[@]}" -- \
  "$python" examples/gpt.py "${shape[@]}" --batch "$batch" --text "$text" --bytes "$bytes" > "$scratch/run.json" 2> "$scratch/run.log" ||
  { cat "$scratch/run.log" >&2; exit 1; }
carried=$(($(link_bytes 1) + $(link_bytes 2) - carried))
stop_nodes

"$python" bench/guests/three_ways.py alone "${shape[@]}" --lr "${LR_OF_DDP:-$lr}" --samples "${SAMPLES_OF_DDP:-0}" --batch $((2 * batch)) \
  --text "$text" --bytes "$bytes" > "$scratch/loss" 2> "$scratch/loss.err" ||
  { tail -n 3 "$scratch/loss.err" >&2; exit 1; }

"$python" - "$scratch" "$strategy, tau $tau${SET:+, $SET}" "$carried" <<'PY'
import json, sys
scratch, way, carried = sys.argv[1:]

def rate(host):
    rows = [tuple(map(float, line.split())) for line in open(f'{scratch}/ddp-{host}') if line[0].isdigit()]
    warm = next(row for row in rows if row[0] >= rows[0][0] + 3)  # connections and caches
    return (rows[-1][1] - warm[1]) / (rows[-1][0] - warm[0])

ddp = rate(1) + rate(2)
run = json.load(open(f'{scratch}/run.json'))
alone = next(float(line.split()[1]) for line in open(f'{scratch}/loss') if line.startswith('loss '))
needed = max(float(line.split()[1]) for line in open(f'{scratch}/loss') if line[0].isdigit())  # samples
speed, loss, samples = run['train']['images_per_s'], run['test']['loss'], run['samples']
print(f"DDP      {ddp:8.1f} samples/s   {needed:,.0f} samples in {needed / ddp:.0f} s, test loss {alone:.4f} (its arithmetic, without the link)")
print(f"Troupe   {speed:8.1f} samples/s   {samples:,} samples in {samples / speed:.0f} s, test loss {loss:.4f}: {way}; the link carried {int(carried) / 1e6:.0f} MB")
print(f"{speed / ddp:.1f} times as many samples/s; test loss {100 * (loss / alone - 1):+.2f} % (asked: within 0.5) in 1/{needed / ddp / (samples / speed):.1f} of the time "
      "(asked: 1/10)")
print(json.dumps({'ddp': ddp, 'troupe': speed, 'ratio': speed / ddp, 'ddp_loss': alone, 'loss': loss, 'ddp_samples': needed, 'samples': samples}))
PY
