#!/usr/bin/env bash
# What a run store answers and how fast: 100,000 runs and 10 million points, stored through the library; then 10,000 directories of runs, read and looked
# at again. The target is 100 ms for list and compare.
#
#   bench/run_store.sh [RUNS] [POINTS of a run] [ROUNDS] [DIRECTORIES]      BIN: where the programs are; TMPDIR: a local disk with 3 GB
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${BIN:-build/bin}
[[ -x $bin/bench_run_store ]] || { echo "no program at $bin/bench_run_store: run scripts/build, or set BIN" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "load average: $(cut -d' ' -f1-3 /proc/loadavg)"
"$bin/bench_run_store" "$folder" "$@"
