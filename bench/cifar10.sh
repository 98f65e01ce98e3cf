#!/usr/bin/env bash
# CIFAR-10 from tar shards of JPEGs or PNGs with two EASGD workers on two cores (bench/cifar10-shards.toml): test accuracy by epoch and
# time, in float32 and in bfloat16, whose curves should agree. What limits it: the arithmetic of the convolutions, 0.46 GFLOP an image.
#
#   bench/cifar10.sh [OPTION=VALUE...]      each is passed on as --set, e.g. run.epochs=3
#
# DATA (default ../shared/data/cifar10, else data/cifar10-shards) has train-*.tar and test-*.tar. PRECISIONS: default "fp32 bf16".
# TROUPE is the program (default build/bin/troupe).
set -euo pipefail
cd "$(dirname "$0")/.."
[[ "${1:-}" != -* ]] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
troupe=${TROUPE:-build/bin/troupe}
[[ -x $troupe ]] || { echo "no program at $troupe: run scripts/build, or set TROUPE" >&2; exit 2; }
data=${DATA:-../shared/data/cifar10}
compgen -G "$data/train*.tar" >/dev/null || data=data/cifar10-shards
compgen -G "$data/train*.tar" >/dev/null || { echo "no train*.tar in $data: set DATA" >&2; exit 2; }
settings=()
for setting in "$@"; do settings+=(--set "$setting"); done
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
for precision in ${PRECISIONS:-fp32 bf16}; do
  "$troupe" train bench/cifar10-shards.toml --quiet --set "data.path=$data" --set "cluster.precision=$precision" \
    --set "run.dir=$runs" --set "run.name=$precision" ${settings[@]+"${settings[@]}"} >/dev/null
  python3 - "$runs" "$precision" <<'PY'
import glob, json, sys
runs, precision = sys.argv[1:]
directory = glob.glob(f'{runs}/*-{precision}')[0]
print(f'{precision}: test accuracy after each epoch')
for line in open(f'{directory}/metrics.jsonl'):
    line = json.loads(line)
    if line['kind'] == 'epoch':
        print(f"  {line['epoch']:3}  {100 * line['test']['accuracy']:6.2f} %  {line['train_s'] / 60:6.1f} min  {line['train']['images_per_s']:7.0f} images/s")
summary = json.load(open(f'{directory}/summary.json'))
print(f"{precision}: {100 * summary['test']['accuracy']:.2f} % in {summary['wall_s'] / 60:.1f} min", flush=True)
PY
done
