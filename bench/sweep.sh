#!/usr/bin/env bash
# What a sweep saves: configs/mnist-easgd.toml over alpha, tau and lr as a grid of 4 x 4 x 4 runs, and as sweeps (TPE, ASHA) over the same
# ranges with a share of what the grid trained as their budget. Prints the images trained and the best test accuracy of each, and how far
# each sweep is behind each grid. The target: within 0.05 points at 40 % of the grid's images. Asynchronous runs differ from one to the next,
# and so do the bests of two grids: GRIDS=3 says by how much. Compute is counted in images: other load on the machine changes the time only.
# A grid takes a quarter of an hour on two quiet cores, a sweep six minutes. With SAMPLES=6000 EPOCHS=9 a fifth of that, but then runs of the
# same settings differ by more than the target.
#
#   bench/sweep.sh [MNIST]   SEEDS: of the searches, a sweep each ("1"); SHARE: of the grid's images, in percent (40); GRIDS: how many (1)
#                            BIN: where the program is; OUT: keeps the runs there, and goes on with them
#                            SAMPLES, EPOCHS: of a run (60000, 5: as in the configuration)
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(realpath "${BIN:-build/bin}")
mnist=$(realpath "${1:-data/mnist}")
epochs=${EPOCHS:-5}
samples=${SAMPLES:-60000}
share=${SHARE:-40}
[[ -x $bin/troupe ]] || { echo "no program at $bin/troupe: run scripts/build, or set BIN" >&2; exit 2; }
[[ -d $mnist ]] || { echo "no data set at $mnist: give the folder of the four IDX files" >&2; exit 2; }
folder=${OUT:-$(mktemp -d)}
[[ -n ${OUT:-} ]] || trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"
common="run.epochs = $epochs
data.train_samples = $samples
run.evaluate_every = \"$epochs epochs\"
run.journal = \"off\"
run.tensorboard = false"
names=()
train() {  # NAME: goes on with what is there
  names+=("$1")
  "$bin/troupe" grid "$folder/$1.toml" --plain --set "run.dir=$folder" --set "data.path=$mnist" > "$folder/$1.txt" 2> "$folder/$1.log" ||
    { tail -n 3 "$folder/$1.log" >&2; exit 1; }
}
for number in $(seq "${GRIDS:-1}"); do
  cat > "$folder/grid-$number.toml" <<TOML
base = "configs/mnist-easgd.toml"
[grid]
strategy.alpha = [0.1, 0.3, 0.5, 0.9]
strategy.tau = [1, 4, 16, 64]
train.lr = [0.005, 0.02, 0.08, 0.3]
$common
TOML
  train "grid-$number"
done
# Of what the grid has trained: its runs that diverge end early.
budget=$(python3 - "$share" "$epochs" "${names[@]/#/$folder/}" <<'PYTHON'
import json, sys
share, epochs, folders = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
grids = [[s["samples"] for line in open(f"{f}/results.jsonl") if (s := json.loads(line)["summary"])] for f in folders]
print(int(share / 100 * min(sum(runs) / (max(runs) / epochs) for runs in grids)))
PYTHON
)
for seed in ${SEEDS:-1}; do
  cat > "$folder/sweep-$seed.toml" <<TOML
base = "configs/mnist-easgd.toml"
[sweep]
epochs = $budget
seed = $seed
[grid]
strategy.alpha = { linear = [0.1, 0.9] }
strategy.tau = { log = [1, 64] }
train.lr = { log = [0.005, 0.3] }
$common
TOML
  train "sweep-$seed"
done
python3 - "$folder" "$share" "${names[@]}" <<'PYTHON'
import json, sys
folder, share, names = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
def read(name):
    rows = [json.loads(line) for line in open(f"{folder}/{name}/results.jsonl")]
    done = [r["summary"] for r in rows if r["summary"]]
    whole = [s for s in done if s["stopped_by"] is None and s["test"]["accuracy"] is not None]
    return len(rows), len(whole), sum(s["samples"] for s in done), 100 * max(s["test"]["accuracy"] for s in whole)
results = {name: read(name) for name in names}
grids = [results[n] for n in names if n.startswith("grid")]
images = min(g[2] for g in grids)
pairs = reached = 0
for name, (runs, whole, trained, best) in results.items():
    line = f"{name:9} {runs:3} runs, {whole:3} to their ends  {trained:9,} images  best accuracy {best:.2f} %"
    if name.startswith("sweep"):
        behind = [g[3] - best for g in grids]
        pairs += len(grids)
        reached += sum(trained <= share / 100 * images and b <= 0.05 + 1e-9 for b in behind)
        line += f"; {100 * trained / images:.1f} % of a grid's images, {', '.join(f'{b:+.2f}' for b in behind)} points behind"
    print(line)
print(f"target ({share:g} %, 0.05 points): reached in {reached} of {pairs} comparisons of a sweep with a grid")
PYTHON
