#!/usr/bin/env bash
# Are recorded runs replayed bit for bit? LeNet on MNIST, about 500 steps per worker, 2, 3 and 4 workers in turn, several recorded runs per strategy, two
# shards and a snapshot every 300 steps. Ends with exit 1 when any run was not.
#
#   bench/replay.sh MNIST_DIRECTORY [RUNS [STRATEGY…]]      TROUPE: the program (default build/bin/troupe)
set -euo pipefail
cd "$(dirname "$0")/.."
[[ $# -ge 1 ]] || { sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 2; }
troupe=${TROUPE:-build/bin/troupe}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
data=$1
runs=${2:-5}
shift; shift || true
strategies=("$@")
[[ ${#strategies[@]} -gt 0 ]] || strategies=(easgd downpour ssp eamsgd gossip mixed diloco)

failed=0
for strategy in "${strategies[@]}"; do
  for ((run = 0; run < runs; ++run)); do
    workers=$((2 + run % 3))
    [[ $strategy != mixed ]] || workers=4
    rm -rf "$scratch/runs"
    "$troupe" train "configs/mnist-$strategy.toml" --quiet --set "data.path=\"$data\"" --set "run.dir=\"$scratch/runs\"" --set run.epochs=1 \
      --set "run.seed=$((run + 1))" --set "cluster.workers=$workers" --set cluster.servers=2 --set "data.batch=$((60000 / 500 / workers))" \
      --set train.lr=0.01 --set 'run.checkpoint_every="300 steps"' --set run.tensorboard=false
    if line=$("$troupe" replay "$scratch"/runs/* 2>&1); then
      echo "$strategy, $workers workers: $(sed -n '1s/^.*bin: //p' <<<"$line"); $(sed -n '2s/;.*//p' <<<"$line")"
    else
      failed=1
      echo "$strategy, $workers workers: $line"
    fi
  done
done
exit $failed
