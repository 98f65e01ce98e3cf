#!/usr/bin/env bash
# Strong scaling of fully connected models whose neurons are spread over ranks (model.parallel = "neurons"), after the Blue Gene paper (Horak, Elliott &
# Showers 2017): images per second of 784-W-W-10 on 1, 2, 4 and 8 ranks of this machine, blocking and non-blocking, beside the simulator's forecast; then the
# simulator's forecast of the paper's machine beside what the paper reports.
# What limits it: ranks are threads of one process. With more ranks than cores they take turns, and each message waits for its receiver's turn; the heading
# says how many cores there are. The forecast for this machine knows the speed of one rank, and a message's time between two, both measured here first.
#
#   bench/neuron_parallel.sh [OPTION...]      those of bench_neuron_parallel: --batch, --seconds, --rounds, --widths, --ranks      BIN: where the programs are
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${BIN:-build/bin}
[[ -x $bin/bench_neuron_parallel ]] || { echo "no program at $bin/bench_neuron_parallel: run scripts/build, or set BIN" >&2; exit 2; }
echo "load average: $(cut -d' ' -f1-3 /proc/loadavg)"
exec "$bin/bench_neuron_parallel" "$@"
