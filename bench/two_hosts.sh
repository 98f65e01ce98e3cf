#!/usr/bin/env bash
# LeNet on MNIST on two hosts (network namespaces) joined by a slow link, batch 64, one thread each, in one run, images/s of both together:
#   DDP              PyTorch over Gloo: gradients are averaged at every step
#   post-local SGD   the same, weights are averaged every 16 steps
#   Troupe           a node per host, easgd, tau = 16, exchanges overlap with steps; float32 on the wire, and bf16
#   unlinked         the same two nodes with no limit on the link
# and Troupe's test accuracy after EPOCHS epochs, with that of bsp (unlinked: the link does not change what it computes).
# What limits it: 431,080 parameters are 1.7 MB, for which a link of 100 Mbit/s needs 138 ms, and a step of 64 images takes Troupe 6 ms. Averaging at every
# step waits for the link 95 parts in a hundred, every 16 steps more than half. What overlaps does not wait; its exchange is there and back in 276 ms, as
# 16 steps are in 100, so that two of three fall due too early and are skipped; with bf16 on the wire about every second one.
# The last line is JSON: images/s; accuracies; "bytes", what easgd with float32 put on the link as payload of TCP, both ways; "skipped", exchanges
# of that run that fell due while one was under way. Root only; leaves nothing behind. Where there is no torch_ddp.py, or no torch, the peers are null.
#
# Everything but bsp alternates in ROUNDS rounds; of each the median round counts, with all its figures.
#
#   bench/two_hosts.sh MNIST_DIRECTORY [EPOCHS [ROUNDS]]        default 5, 3
#
# PEERS: folder of torch_ddp.py (default ../shared/peers).  PYTHON: default /usr/bin/python3.  BIN: where the program is (default build/bin).
# RATE: the link's, as tc writes it (default 100mbit).
set -euo pipefail
cd "$(dirname "$0")/.."
[[ $# -ge 1 && $1 != -* ]] || { sed -n '2,22s/^# \{0,1\}//p' "$0"; exit 2; }
# shellcheck source=SCRIPTDIR/hosts.sh
source bench/hosts.sh
# shellcheck source=SCRIPTDIR/peers.sh
source bench/peers.sh
enter_namespaces "$@"
data=$(realpath "$1")
epochs=${2:-5}
rounds=${3:-3}
peers=${PEERS:-../shared/peers}
python=${PYTHON:-/usr/bin/python3}
troupe=$(realpath "${BIN:-build/bin}")/troupe
rate=${RATE:-100mbit}
make_certificates "$troupe"
join_hosts
echo "two hosts, $rate each way; load average: $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) cores"

# ---- the peers

# Prints images/s of both ranks: ddp OPTIONS…
ddp() {
  local before after
  before=$(link_bytes 1)
  on_host 2 "$python" "$peers/torch_ddp.py" --world 2 --rank 1 --master 10.0.0.1 --iface eth0 --models lenet --json "$@" > /dev/null &
  on_host 1 "$python" "$peers/torch_ddp.py" --world 2 --rank 0 --master 10.0.0.1 --iface eth0 --models lenet --json "$@" > "$scratch/ddp"
  wait $!
  after=$(link_bytes 1)
  ((after - before > 1000000)) || { echo "PyTorch's ranks did not talk over the link" >&2; exit 1; }
  "$python" -c 'import json, sys; print(json.load(sys.stdin)["images_per_s"])' < "$scratch/ddp"
}

peers_here=yes
if [[ ! -f $peers/torch_ddp.py ]]; then
  echo "no torch_ddp.py in $peers (PEERS names its folder): the peers are left out"
  peers_here=
elif ! "$python" -c 'import torch.distributed' 2> /dev/null; then
  echo "$python has no torch: the peers are left out"
  peers_here=
else
  torch_gflops "$python" > /dev/null
fi

# ---- Troupe

# Payload of TCP that both hosts have put on the link: each packet, also one that is cut later only, carries 66 bytes of headers.
payload() {
  local sum=0 host
  for host in 1 2; do
    sum=$((sum + $(link_bytes $host) - 66 * $(link_packets $host)))
  done
  echo "$sum"
}

port=7100
# One run on fresh nodes; its summary goes to $scratch/NAME.json, the payload on the link is added to it: troupe_run NAME OPTION=VALUE…
troupe_run() {
  local name=$1 before set=() option
  shift
  for option in "$@"; do set+=(--set "$option"); done
  port=$((port + 1))
  start_nodes "$troupe" $port
  before=$(payload)
  on_host 1 "$troupe" train configs/mnist-easgd.toml --nodes "10.0.0.1:$port,10.0.0.2:$port" --ca "$certs/ca.pem" \
    --cert "$certs/host1.pem" --key "$certs/host1.key" --quiet --json --set "data.path=\"$data\"" --set "run.dir=\"$scratch/runs\"" \
    --set run.checkpoint_every=never --set "run.epochs=$epochs" --set data.batch=64 --set cluster.workers=2 --set cluster.threads_per_worker=1 \
    "${set[@]}" > "$scratch/$name.json" || { cat "$scratch"/node?.log >&2; exit 1; }
  echo $(($(payload) - before)) > "$scratch/$name.payload"
  stop_nodes
}

easgd=(strategy.name=easgd strategy.tau=16 strategy.overlap=skip)
for ((round = 1; round <= rounds; ++round)); do
  limit_link "$rate" 64kb
  if [[ -n $peers_here ]]; then
    ddp >> "$scratch/ddp.rates"
    ddp --post-local-sgd 16 >> "$scratch/post_local_sgd.rates"
    echo "round $round: DDP $(tail -1 "$scratch/ddp.rates") images/s, post-local SGD $(tail -1 "$scratch/post_local_sgd.rates")"
  fi
  troupe_run "easgd-$round" "${easgd[@]}"
  troupe_run "bf16-$round" "${easgd[@]}" exchange.wire=bf16
  limit_link none
  troupe_run "unlinked-$round" "${easgd[@]}"
done
troupe_run bsp-1 strategy.name=bsp

"$python" - "$scratch" <<'PY'
import glob, json, os, statistics, sys
scratch = sys.argv[1]
PARAMETERS = 431080

def load(path):
    run = json.load(open(path))
    run['payload'] = int(open(path[:-len('json')] + 'payload').read())
    return run

def median_run(name):
    runs = sorted(map(load, glob.glob(f'{scratch}/{name}-*.json')), key=lambda run: run['train']['images_per_s'])
    return runs[len(runs) // 2]

def median_rate(peer):
    path = f'{scratch}/{peer}.rates'
    return statistics.median(map(float, open(path))) if os.path.exists(path) else None

runs = {name: median_run(name) for name in ('easgd', 'bf16', 'unlinked', 'bsp')}
ddp, post_local_sgd = median_rate('ddp'), median_rate('post_local_sgd')

def formula(name):
    """An exchange of a worker whose shard of the centre is elsewhere: the vector there and back."""
    width = 2 if name == 'bf16' else 4
    away = runs[name]['exchange']['count'] - runs[name]['per_worker'][0]['exchanges']  # the one shard is with worker 0
    return 2 * PARAMETERS * width * away

for name, run in runs.items():
    line = f"Troupe {name:9s} {run['train']['images_per_s']:12.1f} images/s   accuracy {100 * run['test']['accuracy']:.2f} %   exchanges {run['exchange']['count']}, skipped {run['exchange']['skipped']}"
    if name != 'bsp':
        line += f"   on the link {run['payload']} bytes, {run['payload'] / formula(name):.3f} of the formula"
    print(line)
speed = {name: run['train']['images_per_s'] for name, run in runs.items()}
for peer, rate, asked in (('DDP', ddp, 10), ('post-local SGD', post_local_sgd, 1.4), ('unlinked', speed['unlinked'], 0.9)):
    if rate:
        print(f"Troupe / {peer}: {speed['easgd'] / rate:.2f} (asked: {asked}), with bf16 on the wire {speed['bf16'] / rate:.2f}")
points = 100 * (runs['bsp']['test']['accuracy'] - runs['easgd']['test']['accuracy'])
print(f"accuracy: {points:+.2f} points below bsp (asked: at most 0.3)   payload: {runs['easgd']['payload'] / formula('easgd'):.3f} of the formula (asked: at most 1.05)")
print(json.dumps({'ddp': ddp, 'post_local_sgd': post_local_sgd, 'troupe': speed['easgd'], 'unlinked': speed['unlinked'], 'accuracy': runs['easgd']['test']['accuracy'],
                  'accuracy_bsp': runs['bsp']['test']['accuracy'], 'bytes': runs['easgd']['payload'], 'skipped': runs['easgd']['exchange']['skipped']}))
if runs['easgd']['payload'] < formula('easgd'):
    sys.exit('the link carried less than the exchanges need: the nodes found another way')
PY
