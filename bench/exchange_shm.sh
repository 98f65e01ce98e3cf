#!/usr/bin/env bash
# One exchange of PARAMETERS float32 among 2 and 4 ranks of this host, in one run:
#   Open MPI   MPI_Allreduce (the better of plain and in place), and every rank copying the vector
#   Troupe     the shm exchange among processes, and every rank copying the vector
# Peer and Troupe alternate; the best round of each counts, because the machine is shared. Without mpicxx only Troupe's rows.
#
#   bench/exchange_shm.sh [PARAMETERS] [ROUNDS]
#
# PEERS is a folder with allreduce.cpp (default ../shared/peers), TROUPE the program (default build/bin/troupe).
set -euo pipefail
cd "$(dirname "$0")/.."
[[ "${1:-}" != -* ]] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
parameters=${1:-60965224}
rounds=${2:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
peer=
if ! command -v mpicxx > /dev/null; then
  echo "no mpicxx here (Debian: libopenmpi-dev, openmpi-bin): the MPI rows are left out"
elif [[ ! -f ${PEERS:=../shared/peers}/allreduce.cpp ]]; then
  echo "no allreduce.cpp in $PEERS (PEERS names its folder): the MPI rows are left out"
else
  mpicxx -O3 -march=native "$PEERS/allreduce.cpp" -o "$work/allreduce"
  peer=$work/allreduce
fi
echo "load average: $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) cores"

python3 - "${TROUPE:-build/bin/troupe}" "$peer" "$parameters" "$rounds" <<'PY'
import json, subprocess, sys
troupe, peer, parameters, rounds = sys.argv[1:]

def mpi(ranks):
    out = subprocess.run(['mpirun', '--allow-run-as-root', '--oversubscribe', '-n', str(ranks), peer, parameters],
                         check=True, capture_output=True, text=True).stdout
    return {line.split(' ranks ')[0].strip(): float(line.split(' ms')[0].split()[-1]) for line in out.splitlines()}

def ours(ranks):
    out = subprocess.run([troupe, 'bench', 'exchange', '--processes', '--ranks', str(ranks), '--parameters', parameters,
                          '--rounds', '5', '--json'], check=True, capture_output=True, text=True).stdout
    return json.loads(out)

result = {}
for ranks in (2, 4):
    allreduce, copies, exchanges, ratios, peer_copies = [], [], [], [], []
    for _ in range(int(rounds)):
        if peer:
            rows = mpi(ranks)
            allreduce.append(min(rows['MPI_Allreduce'], rows['in place']))
            peer_copies.append(rows['memcpy'])
        run = ours(ranks)
        exchanges.append(run['ms'])
        copies.append(run['memcpy_ms'])
        ratios.append(run['ms'] / run['memcpy_ms'])
    best = min(exchanges)
    row = {'ms': best, 'memcpy_ms': min(copies), 'of_a_copy': sorted(ratios)[len(ratios) // 2]}
    print(f'{ranks} ranks  troupe shm {best:8.2f} ms   copy {min(copies):8.2f} ms   of a copy: {row["of_a_copy"]:.2f} (median of runs), '
          f'{best / min(copies):.2f} (best by best)')
    if peer:
        row |= {'mpi_ms': min(allreduce), 'mpi_over_troupe': min(allreduce) / best}
        print(f'{ranks} ranks  MPI        {min(allreduce):8.2f} ms   copy {min(peer_copies):8.2f} ms   MPI / troupe: {min(allreduce) / best:.1f}')
    result[str(ranks)] = row
print(json.dumps(result))
PY
