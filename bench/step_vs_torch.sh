#!/usr/bin/env bash
# Training throughput beside PyTorch's, in one run on this machine: forward, loss, backward and momentum on a batch in memory,
# one thread, float32. Three rounds, ours and PyTorch's two layouts in turn; the best of each counts, because machines are
# shared and noisy.
#
#   bench/step_vs_torch.sh [PEERS] [MODEL...]      default: $PEERS or ../shared/peers, models lenet mlp cifar
#
# PEERS is a folder with torch_train.py; PYTHON (default /usr/bin/python3) must have torch. Without either, only Troupe's column is printed.
# TROUPE is the program (default build/bin/troupe). SECONDS_EACH: length of one timed window of PyTorch's (default 2).
# PyTorch on the reference BLAS computes matrix products 20 times slower than on OpenBLAS: that is no comparison, so the script
# refuses. With OPENBLAS_CORETYPE set, PyTorch runs with that; OpenBLAS 0.3.21 takes CPUs that it does not know for Haswell.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=SCRIPTDIR/peers.sh
source bench/peers.sh

peers=${1:-${PEERS:-../shared/peers}}
shift || true
models=("${@:-}")
[[ -n ${models[0]} ]] || models=(lenet mlp cifar)
python=${PYTHON:-/usr/bin/python3}
troupe=${TROUPE:-build/bin/troupe}
seconds=${SECONDS_EACH:-2}
rounds=3

[[ -x $troupe ]] || { echo "no program at $troupe: run scripts/build, or set TROUPE" >&2; exit 2; }
layouts=(nchw nhwc)
if [[ ! -f $peers/torch_train.py ]]; then
  echo "no torch_train.py in $peers (PEERS names its folder): PyTorch is left out"
  layouts=()
elif ! "$python" -c 'import torch' 2>/dev/null; then
  echo "$python has no torch (PYTHON names another one): PyTorch is left out"
  layouts=()
else
  gflops=$(torch_gflops "$python")
fi

value() { "$python" -c 'import json, sys; print(json.loads(sys.stdin.read().strip().splitlines()[-1])["images_per_s"])'; }
better() { "$python" -c 'import sys; print(max(float(x) for x in sys.argv[1:]))' "$@"; }

echo "one thread, batch 64, float32${gflops:+; matrix products of PyTorch: $gflops GFLOP/s}"
for model in "${models[@]}"; do
  ours=0 nchw=0 nhwc=0
  for ((round = 1; round <= rounds; ++round)); do
    ours=$(better "$ours" "$("$troupe" bench step --model "$model" --batch 64 --precision fp32 --threads 1 --device cpu --json | value)")
    for layout in "${layouts[@]}"; do
      theirs=$("$python" "$peers/torch_train.py" --models "$model" --batch 64 --threads 1 --layout "$layout" --seconds "$seconds" --json | value)
      printf -v "$layout" '%s' "$(better "${!layout}" "$theirs")"
    done
  done
  "$python" - "$model" "$ours" "$nchw" "$nhwc" <<'PY'
import sys
model, (ours, nchw, nhwc) = sys.argv[1], map(float, sys.argv[2:])
row = f"{model:8} troupe {ours:10.0f} images/s"
print(f"{row}   torch nchw {nchw:10.0f}   nhwc {nhwc:10.0f}   ratio {ours / max(nchw, nhwc):.2f}" if nchw else row)
PY
done
