#!/usr/bin/env bash
# The curves of docs/guests/: two workers train an example under several strategies, each for the same number of epochs. Draws the score on the test
# samples over the samples seen, and prints a row for each run. It compares what strategies reach with equally many samples; the seconds depend on
# what else runs on this machine.
#   numpy    examples/numpy_mlp.py: 30 epochs of 4,000 points of two spirals
#   mnist    examples/mnist.py: 60,000 digits (1 epoch)
#   gpt      examples/gpt.py with 2 layers of width 96: 260,736 parameters, 1,930 windows of 128 bytes
# bench/guests/lora_link.sh draws the curves of examples/lora.py.
#
#   bench/guests/curves.sh [numpy|mnist|gpt]...     default: all
#
# DATA: the folder of MNIST's files (default data/mnist; `troupe data fetch mnist` makes it). OUTPUT: where the pictures go (default docs/figures).
# PYTHON: with numpy and torch (default /usr/bin/python3). TROUPE: the program (default build/bin/troupe). FORMAT: svg or png (default svg).
# RUNS: a folder that keeps the runs; a run that is already there is not repeated (default: a temporary folder).
set -euo pipefail
cd "$(dirname "$0")/../.."
[[ "${1:-}" != -* ]] || { sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 2; }
python=${PYTHON:-/usr/bin/python3}
troupe=${TROUPE:-build/bin/troupe}
output=${OUTPUT:-docs/figures}
format=${FORMAT:-svg}
[[ -x $troupe ]] || { echo "no program at $troupe: run scripts/build, or set TROUPE" >&2; exit 2; }
runs=${RUNS:-$(mktemp -d)}
[[ ${RUNS:-} ]] || trap 'rm -rf "$runs"' EXIT
mkdir -p "$runs"

# train EXAMPLE LABEL WORKERS STRATEGY SETTING… -- PROGRAM…: a run whose directory is $runs/EXAMPLE/…-LABEL.
train() {
  local example=$1 label=$2 workers=$3 strategy=$4 settings=()
  shift 4
  while [[ $1 != -- ]]; do
    settings+=(--set "$1")
    shift
  done
  [[ -s $runs/$example-$label.json ]] || "$troupe" launch --workers "$workers" --strategy "$strategy" --quiet --json --set "run.name=$label" --set "run.dir=$runs/$example" \
    --set model.start_s=500 --set run.checkpoint_every=never --set cluster.threads_per_worker=1 "${settings[@]}" "$@" > "$runs/$example-$label.json" \
    2> "$runs/$example-$label.log" || { cat "$runs/$example-$label.log" >&2; exit 1; }
  "$python" - "$runs/$example-$label.json" "$label" <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
accuracy = run['test']['accuracy']
print(f"| {sys.argv[2]} | {run['samples']:,} | {run['test']['loss']:.3f} | {f'{100 * accuracy:.2f} %' if accuracy else ''} | {run['exchange']['count']:,} "
      f"| {run['wall_s']:.0f} s |", flush=True)
PY
}

# compare EXAMPLE SCORE EVERY PROGRAM…: the picture of SCORE (loss, accuracy), evaluated after EVERY.
compare() {
  local example=$1 score=$2 every=$3
  shift 3
  echo
  echo "$example: $*"
  echo
  echo "| strategy | samples | test loss | accuracy | exchanges | time |"
  echo "|-|-|-|-|-|-|"
  train "$example" bsp 2 bsp "run.evaluate_every=$every" -- "$@"
  train "$example" easgd-tau-10 2 easgd strategy.tau=10 "run.evaluate_every=$every" -- "$@"
  train "$example" diloco-tau-20 2 diloco strategy.tau=20 "run.evaluate_every=$every" -- "$@"
  local directories=("$runs/$example"/*-bsp "$runs/$example"/*-easgd-tau-10 "$runs/$example"/*-diloco-tau-20)
  "$troupe" plot "${directories[@]}" --over samples --format "$format" --output "$runs/$example-plots" > /dev/null
  mkdir -p "$output"
  cp "$runs/$example-plots/$score.$format" "$output/guests-$example.$format"
  echo
  echo "$output/guests-$example.$format"
}

# Debian's text once, for all processes: its folders have tens of thousands of files.
text() {
  PYTHONPATH=examples:python "$python" -c 'import sys, gpt; sys.stdout.buffer.write(gpt.debian_text(int(sys.argv[1])))' "$1" > "$runs/text"
}

what=("$@")
[[ ${#what[@]} -gt 0 ]] || what=(numpy mnist gpt)
for example in "${what[@]}"; do
  case $example in
    numpy) compare numpy loss "5 epochs" "$python" examples/numpy_mlp.py ;;
    mnist) compare mnist accuracy "150 steps" "$python" examples/mnist.py --data "${DATA:-data/mnist}" --epochs 1 ;;
    gpt)
      text 260000
      compare gpt loss "30 steps" "$python" examples/gpt.py --layers 2 --width 96 --heads 4 --text "$runs/text" --batch 8
      ;;
    *) echo "$example: numpy, mnist or gpt" >&2; exit 2 ;;
  esac
done
