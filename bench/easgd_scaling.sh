#!/usr/bin/env bash
# Two EASGD workers that exchange after every step (tau = 1) beside one worker that never exchanges, one thread each, images/s of training as
# summary.json has them. What limits it: the exchange reads and writes two vectors of all parameters while its worker waits (lenet 431,080
# floats, alexnet_torch 61,100,840), and two workers share the machine's caches and memory. Rounds alternate; the median ratio counts.
#
#   bench/easgd_scaling.sh [ROUNDS [MODEL [BATCH]]]     default 5 lenet 64; other models get synthetic images of 3x224x224
#
# SECONDS_EACH: how long other models train (default 40): both workers compute to the end, no epoch's last batch leaves one without work.
# TROUPE: the program (default build/bin/troupe)
set -euo pipefail
cd "$(dirname "$0")/.."
troupe=${TROUPE:-build/bin/troupe}
rounds=${1:-5}
model=${2:-lenet}
batch=${3:-64}
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
if [[ $model = lenet ]]; then
  settings=(--set data.train_samples=25600 --set data.test_samples=100)
else
  settings=(--set data.name=synthetic --set data.shape=[3,224,224] --set data.classes=1000 --set data.test_samples=8
            --set data.train_samples=100000 --set run.max_seconds="${SECONDS_EACH:-40}")
fi

images_per_s() {  # OPTIONS…
  "$troupe" train configs/glyphs-easgd.toml --json --quiet --set run.dir="$runs" --set run.epochs=1 --set run.checkpoint_every=never \
    --set model.name="$model" --set data.batch="$batch" "${settings[@]}" "$@" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["train"]["images_per_s"])'
}

for ((round = 1; round <= rounds; ++round)); do
  one=$(images_per_s --set strategy.name=bsp --set cluster.workers=1)
  two=$(images_per_s --set strategy.name=easgd --set strategy.tau=1 --set cluster.workers=2)
  echo "$one $two"
done | python3 -c '
import sys, statistics
rows = [tuple(map(float, line.split())) for line in sys.stdin]
for one, two in rows:
    print(f"one worker {one:9.1f} images/s   two EASGD workers, tau 1 {two:9.1f} images/s   ratio {two / one:.3f}")
print(f"median ratio {statistics.median(two / one for one, two in rows):.3f}")'
