#!/usr/bin/env bash
# How much of an exchange a backward pass hides: bulk-synchronous steps of an AlexNet-sized model (60,965,224 float32) of two processes of this host, exchange
# after the backward pass beside exchange of each layer from the moment when its gradients are there. Exposed is what a step takes longer than
# the backward pass alone, which is LONGER times as long as an exchange and synthetic: it spends on each layer its share of the multiplications.
#   gloo     all_reduce through PyTorch, one per layer and asynchronous, where PYTHON (default /usr/bin/python3) has torch
#   asa      Troupe's over the shm endpoint: vectors are copied, chunk by chunk
#   shm      Troupe's in place over mapped memory
# What limits it: an exchange within a host is the processors' work. A backward pass that sleeps leaves them to it, as one on an accelerator does, and what stays exposed is
# the last layer's exchange, and waking up. One that computes does not: with as many cores as ranks (2 here) the exchange takes from the backward pass what it
# hides behind it; rows "compute" say how much, and need a core more per rank to look like the others.
#
# Over a link the exchange mostly waits, and a backward pass that computes hides it too: with LINK=1gbit (as tc writes it) the processes are on two hosts
# that such a link joins, and there are rows of asa16 over tcp with TLS instead. That needs root.
#
#   bench/overlap.sh [ROUNDS [LONGER]]      default 15, 1.5; medians of the rounds count        BIN: where the programs are (default build/bin)
set -euo pipefail
cd "$(dirname "$0")/.."
[[ "${1:-}" != -* ]] || { sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 2; }
bin=${BIN:-build/bin}
python=${PYTHON:-/usr/bin/python3}
rounds=${1:-15}
longer=${2:-1.5}
ranks=()
if [[ -n ${LINK:-} ]]; then
  # shellcheck source=SCRIPTDIR/hosts.sh
  source bench/hosts.sh
  enter_namespaces "$@"
  join_hosts
  limit_link "$LINK" 256kb
  make_certificates "$bin/troupe"
else
  scratch=$(mktemp -d)
  trap '[[ ${#ranks[@]} == 0 ]] || kill -KILL "${ranks[@]}" || true; rm -rf "$scratch"' EXIT
fi
echo "load average: $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) cores"

# Both ranks of COMMAND…, to which their number is given as the last argument; rank 0's line goes to $scratch/rows.
both() {
  rm -rf "$scratch/meeting"
  mkdir "$scratch/meeting"
  "$@" 1 > /dev/null &
  ranks=($!)
  "$@" 0 > "$scratch/row" &
  ranks+=($!)
  wait "${ranks[0]}"
  wait "${ranks[1]}"
  ranks=()
  cat "$scratch/row" >> "$scratch/rows"
}

# A rank of Troupe's on this host, or on the one that has its number: rank OPTIONS… RANK
rank() { exec "$bin/bench_overlap" --rounds "$rounds" --longer "$longer" --folder "$scratch/meeting" --ranks 2 --rank "${@: -1}" "${@:1:$#-1}"; }
rank_on_host() {
  local host=$((${*: -1} + 1))
  exec ip netns exec "host$host" "$bin/bench_overlap" --rounds "$rounds" --longer "$longer" --folder "$scratch/meeting" --ranks 2 --rank "${@: -1}" \
    --listen "10.0.0.$host:0" --ca "$certs/ca.pem" --cert "$certs/host$host.pem" --key "$certs/host$host.key" "${@:1:$#-1}"
}

if [[ -n ${LINK:-} ]]; then
  for backward in sleep compute; do both rank_on_host --endpoint tcp --algorithm asa16 --backward "$backward"; done
elif "$python" -c 'import torch.distributed' 2> /dev/null; then
  cat > "$scratch/gloo.py" <<'PY'
import json, os, statistics, sys, time, torch, torch.distributed as dist
layers, rounds, longer, folder, rank = json.loads(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4], int(sys.argv[5])
os.environ['GLOO_SOCKET_IFNAME'] = 'lo'
torch.set_num_threads(1)
dist.init_process_group('gloo', init_method=f'file://{folder}/gloo', rank=rank, world_size=2)
vector = torch.ones(sum(layer['parameters'] for layer in layers))
parts, offset = [], 0
for layer in layers:
    parts.append(vector[offset:offset + layer['parameters']])
    offset += layer['parameters']

def step(how, length):
    vector.fill_(rank)
    dist.barrier()
    began, done, pending = time.perf_counter(), 0.0, []
    for layer, part in zip(layers, parts):
        done += layer['share']
        time.sleep(max(0.0, began + done * length - time.perf_counter()))
        if how == 'during': pending.append(dist.all_reduce(part, async_op=True))
    if how == 'after': dist.all_reduce(vector)
    for work in pending: work.wait()
    return 1e3 * (time.perf_counter() - began)

exchange = torch.tensor([statistics.median([step('after', 0.0) for _ in range(6)][1:])])
dist.all_reduce(exchange)
length = longer * exchange.item() / 2e3
times = {how: [] for how in ('alone', 'after', 'during')}
for _ in range(rounds):
    for how in times: times[how].append(step(how, length))
alone, after, during = (statistics.median(times[how]) for how in times)
dist.barrier()
print(json.dumps({'endpoint': 'gloo', 'algorithm': 'all_reduce', 'backward': 'sleep', 'exchange_ms': exchange.item() / 2, 'backward_ms': alone, 'after_ms': after,
                  'during_ms': during, 'exposed_after_ms': after - alone, 'exposed_during_ms': during - alone, 'share': (during - alone) / (after - alone)}))
PY
  both "$python" "$scratch/gloo.py" "$("$bin/bench_overlap" --layers)" "$rounds" "$longer" "$scratch/meeting"
else
  echo "$python has no torch: Gloo's row is left out"
fi
for backward in sleep compute; do
  [[ -z ${LINK:-} ]] || break
  for algorithm in asa shm; do both rank --endpoint shm --algorithm "$algorithm" --backward "$backward"; done
done

"$python" - "$scratch/rows" <<'PY'
import json, sys
result = {}
for row in map(json.loads, open(sys.argv[1])):
    print(f"{row['endpoint']:5s}{row['algorithm']:11s}{row['backward']:8s} backward {row['backward_ms']:7.1f} ms   step: exchange after {row['after_ms']:7.1f}, during {row['during_ms']:7.1f}   "
          f"exposed: {row['exposed_after_ms']:7.1f} and {row['exposed_during_ms']:6.1f} ms   share {row['share']:.2f}")
    result[f"{row['algorithm']}_{row['backward']}"] = {key: round(row[key], 3) for key in ('backward_ms', 'exposed_after_ms', 'exposed_during_ms', 'share')}
print('asked: a share of 0.25 where the processors are free')
print(json.dumps(result))
PY
