#!/usr/bin/env bash
# One exchange of PARAMETERS float32 between two hosts (network namespaces) over a link of 1 Gbit/s each way, in one run:
#   Gloo     all_reduce through PyTorch, in the clear, where PYTHON (default /usr/bin/python3) has torch
#   Troupe   asa, asa16 in fp16 and in bf16: tcp with mutual TLS, one process per host
# What limits it: the link. A member sends 4 bytes per parameter with asa and 2 with asa16, and as much comes the other way. TLS, rounding and
# summing take two cores a fraction of that. Checks what the link carried against exchange::collective_bytes and ends with exit 1 when that is
# not it. Root only; leaves nothing behind. The last line is JSON.
#
#   bench/exchange_link.sh [PARAMETERS] [ROUNDS]      default 60965224, 5; the median of the rounds counts
#
# BIN: where the programs are (default build/bin).  RATE: the link's, as tc writes it (default 1gbit).
# BURST: the bytes that pass at once (default 256kb); with 64kb packets come one by one, which costs more of the processor.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ "${1:-}" != -* ]] || { sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2; }
# shellcheck source=SCRIPTDIR/hosts.sh
source bench/hosts.sh
enter_namespaces "$@"
parameters=${1:-60965224}
rounds=${2:-5}
bin=${BIN:-build/bin}
rate=${RATE:-1gbit}
python=${PYTHON:-/usr/bin/python3}

join_hosts
limit_link "$rate" "${BURST:-256kb}"
make_certificates "$bin/troupe"
echo "two hosts, $rate each way; load average: $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) cores"

# Both ranks of COMMAND…, to which their number is given as the last argument; their last lines go to $scratch/out-0 and out-1.
both() {
  on_host 1 "$@" 0 > "$scratch/out-0" &
  local first=$!
  on_host 2 "$@" 1 > "$scratch/out-1"
  wait "$first"
}

gloo=null
if "$python" -c 'import torch.distributed' 2> /dev/null; then
  cat > "$scratch/gloo.py" <<'PY'
import os, statistics, sys, time, torch, torch.distributed as dist
parameters, rounds, rank = map(int, sys.argv[1:])
os.environ.update(MASTER_ADDR='10.0.0.1', MASTER_PORT='29533', GLOO_SOCKET_IFNAME='eth0')
torch.set_num_threads(1)
dist.init_process_group('gloo', rank=rank, world_size=2)
x, times = torch.ones(parameters), []
for _ in range(rounds + 1):
    dist.barrier()
    began = time.perf_counter()
    dist.all_reduce(x)
    times.append(1e3 * (time.perf_counter() - began))
print(statistics.median(times[1:]))
dist.barrier()
PY
  both "$python" "$scratch/gloo.py" "$parameters" "$rounds"
  gloo=$(cat "$scratch/out-0")
else
  echo "$python has no torch: Gloo's row is left out"
fi

# A rank of Troupe's: rank ALGORITHM HALF RANK
cat > "$scratch/rank" <<RANK
#!/usr/bin/env bash
me=host\$((\$3 + 1))
TIMEFORMAT='%U %S'
time "$bin/bench_collective" --endpoint tcp --algorithm "\$1" --half "\$2" --rank "\$3" --ranks 2 --parameters "$parameters" --rounds "$rounds" \\
  --folder "$scratch/meeting" --listen 10.0.0.\$((\$3 + 1)):0 --ca "$certs/ca.pem" --cert "$certs/\$me.pem" --key "$certs/\$me.key"
RANK
chmod +x "$scratch/rank"
for way in asa:fp16 asa16:fp16 asa16:bf16; do
  rm -rf "$scratch/meeting"
  mkdir "$scratch/meeting"
  before="$(link_bytes 1) $(link_bytes 2)"
  both "$scratch/rank" "${way%:*}" "${way#*:}" 2> "$scratch/times"
  echo "$way $before $(link_bytes 1) $(link_bytes 2)" >> "$scratch/ways"
  cat "$scratch/out-0" "$scratch/out-1" >> "$scratch/ways"
  tail -n 2 "$scratch/times" | tr '\n' ' ' >> "$scratch/ways"
  echo >> "$scratch/ways"
done

"$python" - "$scratch/ways" "$gloo" "$rounds" <<'PY'
import json, sys
lines, gloo, rounds = open(sys.argv[1]).read().splitlines(), json.loads(sys.argv[2]), int(sys.argv[3])
ms, wrong = {}, []
for k in range(0, len(lines), 4):
    way, *counters = lines[k].split()
    before, after = [int(c) for c in counters[:2]], [int(c) for c in counters[2:]]
    ranks = [json.loads(line) for line in lines[k + 1:k + 3]]
    ms[way] = max(rank['ms'] for rank in ranks)
    for rank, b, a in zip(ranks, before, after):
        carried, formula = a - b, (rounds + 1) * rank['formula']
        # Beside the payload: 66 bytes for TCP, IP and Ethernet, of 1,514 or of a packet that is cut later only, 22 of 16,384 for TLS, what
        # acknowledges the other direction, and the dialogue of the beginning.
        if rank['bytes'] != rank['formula'] or rank['sent'] != formula or not formula <= carried <= 1.1 * formula + 100_000:
            wrong.append(f"{way}, rank {rank['rank']}: formula {formula} bytes, sent {rank['sent']}, the link carried {carried}")
        print(f"{way:11s} rank {rank['rank']} {rank['ms']:9.1f} ms   payload {rank['bytes']} bytes, as the formula says; on the link {carried / formula:.3f} of it")
    # Start-up and sums included; each rank sends and receives the payload of a round.
    moved = 2 * sum(rank['sent'] for rank in ranks)
    print(f"{way:11s} processor time {1e9 * sum(map(float, lines[k + 3].split())) / moved:.2f} ms per MB sent or received")
if gloo:
    print(f"{'gloo':18s} {gloo:9.1f} ms   gloo / asa: {gloo / ms['asa:fp16']:.2f}")
result = {'asa_ms': ms['asa:fp16'], 'gloo_ms': gloo}
for half in ('fp16', 'bf16'):
    result |= {f'asa16_{half}_ms': ms['asa16:' + half], f'asa_over_asa16_{half}': ms['asa:fp16'] / ms['asa16:' + half]}
print(f"asa / asa16: {result['asa_over_asa16_fp16']:.2f} in fp16, {result['asa_over_asa16_bf16']:.2f} in bf16 (asked: 1.7)")
print(json.dumps(result))
sys.exit('\n'.join(wrong) or 0)
PY
