#!/usr/bin/env bash
# What checkpoints cost training when each fsync takes DELAY seconds (a checkpoint needs four): easgd on two workers whose steps take
# 20 ms, a checkpoint per epoch of 5 s. A preloaded library makes fsync wait. Times are from the end of the first epoch to the end of the
# last one, so neither the first checkpoint, which training waits for, nor the last is among them.
# The last line is JSON: seconds per step and worker with the disk as it is and with the slow one, and their ratio.
#
#   bench/slow_disk.sh [DELAY [EPOCHS]]        default 5, 6
#
# PYTHON: default /usr/bin/python3.  BIN: where the program is (default build/bin).  CC: default cc.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ ${1:-} != -* ]] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
delay=${1:-5}
epochs=${2:-6}
python=${PYTHON:-/usr/bin/python3}
troupe=$(realpath "${BIN:-build/bin}")/troupe
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"${CC:-cc}" -shared -fPIC -x c -o "$scratch/slow_fsync.so" - <<'SOURCE'
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
int fsync(int file) {
  usleep((useconds_t)(1e6 * atof(getenv("FSYNC_DELAY"))));
  return (int)syscall(SYS_fsync, file);
}
SOURCE

cat > "$scratch/run.toml" <<'CONFIG'
[run]
name = "slow-disk"
checkpoint_every = "1 epoch"
[model]
name = "mlp"
[data]
name = "glyphs"
batch = 10
train_samples = 5000
test_samples = 100
[strategy]
name = "easgd"
tau = 4
[cluster]
workers = 2
synthetic_step_ms = 20
CONFIG

# Prints seconds per step and worker: measured DELAY
measured() {
  FSYNC_DELAY=$1 LD_PRELOAD=$scratch/slow_fsync.so "$troupe" train "$scratch/run.toml" --quiet \
    --set run.dir="$scratch/runs-$1" --set run.epochs="$epochs"
  "$python" - "$scratch/runs-$1"/*/metrics.jsonl <<'SCRIPT'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
epochs = [line for line in lines if line["kind"] == "epoch"]
saved = sum("checkpoint " in line.get("text", "") for line in lines)
print(f"{saved} checkpoints", file=sys.stderr)
first, last = epochs[0], epochs[-1]
print((last["t"] - first["t"]) / ((last["steps"] - first["steps"]) / 2))
SCRIPT
}

normal=$(measured 0)
slow=$(measured "$delay")
"$python" -c "
import json
print(f'a step takes {1000 * $normal:.2f} ms; with an fsync of $delay s {1000 * $slow:.2f} ms')
print(json.dumps({'step_s': $normal, 'slow_disk_step_s': $slow, 'ratio': round($slow / $normal, 3)}))"
