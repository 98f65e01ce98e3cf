#!/usr/bin/env bash
# Whether what bench/guests/slow_link.sh measures once, equal test loss with fewer exchanges, holds for other seeds and other texts. A link changes how
# long an exchange takes, and with diloco nothing that is learnt. So both are trained here without one, with slow_link.sh's settings for START:
#   ddp     DistributedDataParallel's arithmetic: one process with twice the batch, SAMPLES_OF_DDP of the samples
#   troupe  two workers, an exchange every 16 steps, all samples
# from the model of START, for each case SEED:FIRST, where FIRST is the first byte of 360,000 of the sources of Python's standard library.
#
#   bench/guests/equal_loss.sh [SEED:FIRST …]      default: four seeds and three other texts; three minutes a case, on two cores
#
# START: the run that slow_link.sh has made, or makes. SAMPLES_OF_DDP (6800). SET (more --set).
# TROUPE: the program (build/bin/troupe). PYTHON: with torch (/usr/bin/python3).
set -euo pipefail
cd "$(dirname "$0")/../.."
[[ ${1:-} != -* ]] || { sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 2; }
cases=("$@")
[[ ${#cases[@]} -gt 0 ]] || cases=(1:0 2:0 3:0 4:0 1:400000 1:800000 1:1200000)
python=${PYTHON:-/usr/bin/python3}
troupe=$(realpath "${TROUPE:-build/bin/troupe}")
start=$(realpath "${START:?the run whose model all begin with: see slow_link.sh}")
read -ra more <<< "${SET:-strategy.outer_lr=0.6 strategy.outer_momentum=0.7 exchange.wire=bf16}"
settings=(--set strategy.tau=16)
for setting in "${more[@]}"; do settings+=(--set "$setting"); done
export OMP_NUM_THREADS=1 PYTHONPATH=$PWD/python
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
shape=(--layers 2 --width 256 --heads 4 --context 48 --start "$start" --text "$scratch/text" --bytes 360000)
PYTHONPATH=examples:python "$python" -c "import sys, lora; sys.stdout.buffer.write(lora.python_text(3000000))" > "$scratch/all"

for case in "${cases[@]}"; do
  seed=${case%:*}
  tail -c "+$((${case#*:} + 1))" "$scratch/all" > "$scratch/text"
  "$python" bench/guests/three_ways.py alone "${shape[@]}" --seed "$seed" --lr 4e-4 --batch 4 --samples "${SAMPLES_OF_DDP:-6800}" > "$scratch/ddp"
  "$troupe" launch --workers 2 --strategy diloco --quiet --json --set "run.dir=$scratch/runs" --set "run.seed=$seed" --set run.checkpoint_every=never \
    --set run.journal=off "${settings[@]}" -- "$python" examples/gpt.py "${shape[@]}" --seed "$seed" --lr 3e-4 --batch 2 > "$scratch/troupe"
  awk -v name="$case" -v ours="$(sed -n 's/.*"test":{[^}]*"loss":\([0-9.]*\).*/\1/p' "$scratch/troupe")" \
    '/^loss / { printf "%-12s ddp %.4f   troupe %.4f   %+.2f %%\n", name, $2, ours, 100 * (ours / $2 - 1) }' "$scratch/ddp" | tee -a "$scratch/table"
done
awk '{ sum += $6; if ($6 <= 0.5 && $6 >= -0.5) ++within } END { printf "%d of %d within 0.5 %%, mean %+.2f %%\n", within, NR, sum / NR }' "$scratch/table"
