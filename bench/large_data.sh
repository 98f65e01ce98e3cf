#!/usr/bin/env bash
# A data set larger than memory trains in little memory: hard links to 64 photos (made by PIL) that are 20 GB together, as a folder per class
# and as tar shards. One worker trains a resnet18 on random crops of 128 for SECONDS_EACH (default 30); printed are the data set's size, images
# per second and the process's peak of resident memory, beside that of the same run on images that are drawn in memory: most of it is copies of
# the model (47 MB each) and activations. Ends with an error where a peak is above 600 MB.
#
#   bench/large_data.sh [GIGABYTES]      default 20; takes a few hundred MB of disk in TMPDIR
#
# PYTHON (default /usr/bin/python3) must have numpy and PIL. BUILD is the build's directory (default build).
set -euo pipefail
cd "$(dirname "$0")/.."
gigabytes=${1:-20}
python=${PYTHON:-/usr/bin/python3}
program=${BUILD:-build}/bin/troupe
[[ -x $program ]] || { echo "no program at $program: run scripts/build, or set BUILD" >&2; exit 2; }
"$python" -c 'import numpy, PIL' 2>/dev/null || { echo "skipped: $python has no numpy or no PIL (PYTHON names another one)"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$python" - "$folder" "$gigabytes" <<'PY'
"""Photos of about 110 kB, in 8 classes; shards of 1,000 samples; links until the size is reached."""
import io, os, sys, tarfile
import numpy
import PIL.Image

folder, wanted = sys.argv[1], float(sys.argv[2]) * 1e9
rng = numpy.random.default_rng(0)
photos = []
for i in range(64):
    clouds = rng.normal(128, 60, (34, 42, 3)).clip(0, 255).astype("uint8")
    image = numpy.asarray(PIL.Image.fromarray(clouds).resize((640, 512), PIL.Image.BICUBIC)).astype("int16")
    image = (image + rng.normal(0, 8, image.shape)).clip(0, 255).astype("uint8")
    out = io.BytesIO()
    PIL.Image.fromarray(image).save(out, "jpeg", quality=92)
    photos.append(out.getvalue())

def put(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)

def tar(path, samples):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tarfile.open(path, "w") as file:
        for i in range(samples):
            for ending, data in ((".jpg", photos[i % 64]), (".cls", str(i % 8).encode())):
                info = tarfile.TarInfo(f"{i:06}{ending}")
                info.size = len(data)
                file.addfile(info, io.BytesIO(data))

for i, photo in enumerate(photos):
    put(f"{folder}/folder/train/class{i % 8}/{i:07}.jpg", photo)
    put(f"{folder}/folder/val/class{i % 8}/{i:07}.jpg", photo)
tar(f"{folder}/shards/train-00000.tar", 1000)
tar(f"{folder}/shards/val-00000.tar", 64)
size, i = sum(map(len, photos)), 64
while size < wanted:
    os.link(f"{folder}/folder/train/class{i % 8}/{i % 64:07}.jpg", f"{folder}/folder/train/class{i % 8}/{i:07}.jpg")
    size += len(photos[i % 64])
    i += 1
shard = os.path.getsize(f"{folder}/shards/train-00000.tar")
for k in range(1, int(wanted / shard) + 1):
    os.link(f"{folder}/shards/train-00000.tar", f"{folder}/shards/train-{k:05}.tar")
PY

cat >"$folder/config.toml" <<TOML
[run]
epochs = 1
dir = "$folder/runs"
max_seconds = ${SECONDS_EACH:-30}
checkpoint_every = "never"
[model]
name = "resnet18"
[data]
name = "folder"
path = "$folder/folder"
classes = 8
crop = 128
random_resized_crop = true
mirror = true
normalise = true
batch = 4
prefetch = 3
decode_threads = 1
[train]
optimizer = "sgd"
lr = 0.01
[strategy]
name = "easgd"
[cluster]
workers = 1
threads_per_worker = 1
kernels = "fixed"
TOML

status=0
for form in synthetic folder shards; do
  "$python" - "$program" "$folder" "$form" <<'PY' || status=1
import json, os, resource, subprocess, sys
program, folder, form = sys.argv[1:]
bytes_of = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(f"{folder}/{form}") for name in names)
settings = {"data.name": form, "data.path": f"{folder}/{form}"}
if form == "synthetic":
    settings = {"data.name": form, "data.shape": "[3,128,128]", "data.random_resized_crop": "false", "data.crop": "0", "data.test_samples": "64"}
run = subprocess.run([program, "train", f"{folder}/config.toml", "--quiet", "--json"] +
                     [word for key, value in settings.items() for word in ("--set", f"{key}={value}")], stdout=subprocess.PIPE, text=True)
if run.returncode != 0:
    sys.exit(f"{form}: exit code {run.returncode}")
summary = json.loads(run.stdout)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(f"{form}: {bytes_of / 1e9:.1f} GB, {summary['samples'] / summary['wall_s']:.0f} images/s of one worker, "
      f"peak of resident memory {peak:.0f} MiB")
if peak * 1.048576 > 600:
    sys.exit(f"{form}: more than 600 MB")
PY
done
exit $status
