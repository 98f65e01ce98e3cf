#!/usr/bin/env bash
# What a sweep saves: configs/mnist-easgd.toml over alpha, tau and lr as a grid of 4 x 4 x 4 runs, and as a sweep (TPE, ASHA) over the same
# ranges. Prints for both the images trained and the best test accuracy. The target: within 0.05 points at 40 % of the grid's images.
# Compute is counted in images, so other load on the machine changes the time only.
#
#   bench/sweep.sh [MNIST] [RUNS]      BIN: where the program is; OUT: keeps the runs there; SAMPLES, EPOCHS: of a run; SEED: of the search
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(realpath "${BIN:-build/bin}")
mnist=$(realpath "${1:-data/mnist}")
runs=${2:-34}
[[ -x $bin/troupe ]] || { echo "no program at $bin/troupe: run scripts/build, or set BIN" >&2; exit 2; }
[[ -d $mnist ]] || { echo "no data set at $mnist: give the folder of the four IDX files" >&2; exit 2; }
folder=${OUT:-$(mktemp -d)}
[[ -n ${OUT:-} ]] || trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"
common="run.epochs = ${EPOCHS:-9}
data.train_samples = ${SAMPLES:-6000}
run.evaluate_every = \"${EPOCHS:-9} epochs\"
run.journal = \"off\"
run.tensorboard = false"
cat > "$folder/grid.toml" <<TOML
base = "configs/mnist-easgd.toml"
[grid]
strategy.alpha = [0.1, 0.3, 0.5, 0.9]
strategy.tau = [1, 4, 16, 64]
train.lr = [0.005, 0.02, 0.08, 0.3]
$common
TOML
cat > "$folder/sweep.toml" <<TOML
base = "configs/mnist-easgd.toml"
[sweep]
runs = $runs
seed = ${SEED:-1}
[grid]
strategy.alpha = { linear = [0.1, 0.9] }
strategy.tau = { log = [1, 64] }
train.lr = { log = [0.005, 0.3] }
$common
TOML
for file in sweep grid; do
  "$bin/troupe" grid "$folder/$file.toml" --plain --set "run.dir=$folder" --set "data.path=$mnist" > "$folder/$file.txt" 2> "$folder/$file.log"
done
python3 - "$folder" <<'PYTHON'
import json, sys
def read(name):
    rows = [json.loads(line) for line in open(f"{sys.argv[1]}/{name}/results.jsonl")]
    done = [r["summary"] for r in rows if r["summary"]]
    images = sum(s["samples"] for s in done)
    whole = [s for s in done if s["stopped_by"] is None and s["test"]["accuracy"] is not None]
    return len(rows), images, 100 * max(s["test"]["accuracy"] for s in whole)
grid, sweep = read("grid"), read("sweep")
for name, (runs, images, best) in (("grid", grid), ("sweep", sweep)):
    print(f"{name:5}  {runs:3} runs  {images:9,} images  best accuracy {best:.2f} %")
share, behind = 100 * sweep[1] / grid[1], grid[2] - sweep[2]
reached = "reached" if share <= 40 and behind <= 0.05 else "missed"
print(f"sweep: {share:.0f} % of the grid's images, {behind:+.2f} points behind its best; target (40 %, 0.05 points): {reached}")
PYTHON
