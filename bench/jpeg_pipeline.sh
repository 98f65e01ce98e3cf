#!/usr/bin/env bash
# From JPEG files to normalised training images of 224 x 224 (random resized crop, mirror), beside torchvision's ImageFolder with the same
# steps, in one run on this machine, one thread each. Three rounds in turn; the best of each counts, because machines are shared and noisy.
#
#   bench/jpeg_pipeline.sh [FOLDER]      FOLDER has train/ and val/ with a folder per class; default: photos made by PIL
#
# PYTHON (default /usr/bin/python3) must have torchvision and PIL; without them only Troupe's column is printed (with FOLDER), or nothing.
# BUILD is the build's directory (default build). SECONDS_EACH: length of one timed window (default 3).
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-/usr/bin/python3}
program=${BUILD:-build}/bin/bench_jpeg_pipeline
seconds=${SECONDS_EACH:-3}
[[ -x $program ]] || { echo "no program at $program: run scripts/build, or set BUILD" >&2; exit 2; }
peer=yes
"$python" -c 'import torchvision, PIL' 2>/dev/null || peer=no

folder=${1:-}
if [[ -z $folder ]]; then
  [[ $peer = yes ]] || { echo "skipped: $python has no torchvision (PYTHON names another one), and no FOLDER is given"; exit 0; }
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  "$python" - "$folder" <<'PY'
"""Photos of ImageNet's usual sizes: coloured clouds with noise, about 65 kB each at 500 x 375."""
import os, sys
import numpy
import PIL.Image
rng = numpy.random.default_rng(0)
for i in range(48):
    width, height = [(500, 375), (375, 500), (500, 333), (640, 480)][i % 4]
    clouds = rng.normal(128, 60, (height // 16 + 2, width // 16 + 2, 3)).clip(0, 255).astype("uint8")
    image = numpy.asarray(PIL.Image.fromarray(clouds).resize((width, height), PIL.Image.BICUBIC)).astype("int16")
    image = (image + rng.normal(0, 8, image.shape)).clip(0, 255).astype("uint8")
    for split in ("train", "val"):
        place = f"{sys.argv[1]}/{split}/class{i % 4}"
        os.makedirs(place, exist_ok=True)
        PIL.Image.fromarray(image).save(f"{place}/{i}.jpg", quality=90)
PY
fi

theirs_once() {
  "$python" - "$folder" "$seconds" <<'PY'
import sys, time
import torch, torchvision
from torchvision import transforms as t
torch.set_num_threads(1)
data = torchvision.datasets.ImageFolder(sys.argv[1] + "/train", t.Compose([t.RandomResizedCrop(224), t.RandomHorizontalFlip(), t.ToTensor(),
    t.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]))
begin, images = time.time(), 0
while time.time() - begin < float(sys.argv[2]):
    torch.stack([data[(images + k) % len(data)][0] for k in range(32)])
    images += 32
print(round(images / (time.time() - begin), 1))
PY
}

ours=0 theirs=0
larger() { awk -v a="$1" -v b="$2" 'BEGIN { print (a > b ? a : b) }'; }
for _ in 1 2 3; do
  ours=$(larger "$ours" "$("$program" "$folder" --seconds "$seconds")")
  [[ $peer = no ]] || theirs=$(larger "$theirs" "$(theirs_once)")
done
if [[ $peer = yes ]]; then
  echo "one thread: troupe $ours images/s   torchvision $theirs images/s   ratio $(awk -v a="$ours" -v b="$theirs" 'BEGIN { printf "%.2f", a / b }')"
else
  echo "one thread: troupe $ours images/s ($python has no torchvision: left out)"
fi
