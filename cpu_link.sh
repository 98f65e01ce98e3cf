#!/usr/bin/env bash
# cpu per MB of an asa exchange over 100 Mbit/s
set -euo pipefail
cd "$(dirname "$0")"
source bench/hosts.sh
enter_namespaces "$@"
join_hosts
limit_link "${RATE:-100mbit}" 64kb
make_certificates build/bin/troupe
for r in 0 1; do
me=host$((r+1))
( cd /work/main; perf stat -x, -e task-clock,context-switches -o $scratch/p$r ip netns exec $me $BIN/bench_collective --endpoint tcp --algorithm asa --half fp16 --rank $r --ranks 2 --parameters 1700000 --rounds 5 --folder $scratch --listen 10.0.0.$((r+1)):0 --ca $certs/ca.pem --cert $certs/$me.pem --key $certs/$me.key > $scratch/o$r 2>&1 || bash -c "TIMEFORMAT='%R %U %S'; time ip netns exec $me $BIN/bench_collective --endpoint tcp --algorithm asa --half fp16 --rank $r --ranks 2 --parameters 1700000 --rounds 5 --folder $scratch --listen 10.0.0.$((r+1)):0 --ca $certs/ca.pem --cert $certs/$me.pem --key $certs/$me.key" > $scratch/o$r 2>&1 ) & done
wait
grep -h . $scratch/p0 $scratch/p1
