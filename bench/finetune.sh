#!/usr/bin/env bash
# Fine-tuning beside training from scratch, on this machine: PyTorch trains torchvision's resnet18 on six classes of CIFAR-10 and writes
# weights.safetensors; Troupe trains the same network on the other four, once from scratch and once with `--init weights.safetensors
# --partial` (another classifier) in a third of the steps, and exports it; PyTorch evaluates that file. Prints the accuracies on the test
# images. Fails if the fine-tuned network is not the better one, or if PyTorch does not find the accuracy that Troupe found.
#
#   bench/finetune.sh [CIFAR10]      a folder with train*.tar and test*.tar of JPEGs; default: ../shared/data/cifar10
#
# SEEDS (default 1): of Troupe's runs. EPOCHS (default 3): of the run from scratch; a multiple of three. PRETRAIN (default 4): epochs of
# PyTorch. SAMPLES: train on so many images only. PYTHON (default /usr/bin/python3) must have torch, torchvision and PIL; without them, or
# without the data, the script says so and ends. TROUPE is the program (default build/bin/troupe). KEEP: a folder for weights, shards and
# runs; weights that are there are not made again. Takes about 10 minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ "${1:-}" != -* ]] || { sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2; }
data=${1:-../shared/data/cifar10}
python=${PYTHON:-/usr/bin/python3}
troupe=${TROUPE:-build/bin/troupe}
epochs=${EPOCHS:-3}
[[ -x $troupe ]] || { echo "no program at $troupe: run scripts/build, or set TROUPE" >&2; exit 2; }
((epochs > 0 && epochs % 3 == 0)) || { echo "EPOCHS=$epochs is no multiple of three" >&2; exit 2; }
if ! compgen -G "$data/train*.tar" >/dev/null; then
  echo "skipped: no train*.tar in $data (name a folder that has CIFAR-10 as tar files of JPEGs)"
  exit 0
fi
if ! "$python" -c 'import torch, torchvision, PIL' 2>/dev/null; then
  echo "skipped: $python has no torch, torchvision and PIL (PYTHON names another one)"
  exit 0
fi

folder=${KEEP:-$(mktemp -d)}
[[ -n ${KEEP:-} ]] || trap 'rm -rf "$folder"' EXIT
if [[ ! -f $folder/weights.safetensors ]]; then
  "$python" bench/finetune/torch_resnet18.py pretrain "$data" "$folder" --epochs "${PRETRAIN:-4}" ${SAMPLES:+--most "$SAMPLES"}
fi

# "ACCURACY RUN" of a new run, and a line about it: trained NAME SEED EPOCHS ARGUMENT…
trained() {
  local name=$1 seed=$2 count=$3
  shift 3
  "$troupe" train bench/finetune/resnet18.toml --set data.path="$folder" --set run.dir="$folder/runs" --set run.seed="$seed" \
    --set run.epochs="$count" --set data.train_samples="${SAMPLES:-0}" --quiet --json "$@" |
    "$python" -c '
import json, sys
name, seed = sys.argv[1:]
s = json.load(sys.stdin)
accuracy, steps, seconds = s["test"]["accuracy"], s["steps"], s["wall_s"]
print(f"seed {seed}  {name:14} {steps:5} steps  {seconds:4.0f} s  accuracy {100 * accuracy:.1f} %", file=sys.stderr)
print(accuracy, s["run"])' "$name" "$seed"
}
is_true() { awk "BEGIN { exit !($1) }"; }

result=0
for seed in ${SEEDS:-1}; do
  read -r scratch run < <(trained "from scratch" "$seed" "$epochs")
  read -r tuned run < <(trained "fine-tuned" "$seed" $((epochs / 3)) --init "$folder/weights.safetensors" --partial)
  "$troupe" export "$run" --to safetensors "$folder/tuned.safetensors" >/dev/null
  theirs=$("$python" bench/finetune/torch_resnet18.py evaluate "$folder/tuned.safetensors" "$folder")
  echo "seed $seed  fine-tuned, exported: PyTorch finds $(awk -v a="$theirs" 'BEGIN { printf "%.1f", 100 * a }') %"
  is_true "$tuned > $scratch" || { echo "seed $seed: the fine-tuned network is not the better one"; result=1; }
  is_true "($tuned - $theirs)^2 < 0.005^2" || { echo "seed $seed: PyTorch finds another accuracy"; result=1; }
done
exit $result
