# shellcheck shell=bash
# Sourced by benchmarks that run PyTorch. On the reference BLAS it computes matrix products 20 times slower than on OpenBLAS: that is no comparison.

# Prints what PyTorch's matrix products reach in GFLOP/s; ends the script when that is the reference BLAS: torch_gflops PYTHON
torch_gflops() {
  local gflops
  gflops=$("$1" - <<'PY'
import time, torch
torch.set_num_threads(1)
a, b, best = torch.randn(256, 256), torch.randn(256, 256), 0.0
for _ in range(30):
    t = time.perf_counter()
    a @ b
    best = max(best, 2 * 256**3 / (time.perf_counter() - t) / 1e9)
print(int(best))
PY
)
  if ((gflops < 20)); then  # 256x256x256 so slowly is the reference BLAS, on any machine that runs this at all
    echo "PyTorch multiplies matrices at $gflops GFLOP/s here: it runs on the reference BLAS. Install libopenblas0 and run again." >&2
    return 1
  fi
  echo "$gflops"
}
