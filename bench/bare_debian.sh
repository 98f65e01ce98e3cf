#!/usr/bin/env bash
# How long a first run takes on a bare Debian 12 (docs/guests.md), from nothing of Troupe's installed to the end of the run:
#   wheel    a virtual environment, `pip install` of scripts/wheel's file, `import troupe`, `troupe --version`, then examples/numpy_mlp.py by `troupe launch`
#   bundle   scripts/bundle's archive is unpacked with tar and zstd, then the same
# debootstrap makes the Debian: the smallest variant with python3, python3-pip, python3-venv, python3-numpy and zstd. It has no network, so neither
# way can take anything from elsewhere; numpy is Debian's. Packing and debootstrap are not in the times.
#
#   bench/bare_debian.sh [wheel|bundle]...     default: both
#
# TROUPE_BUILD: the build to pack (default build).  MIRROR: where Debian's packages are (default: apt's own source).
# Ends with 77 where debootstrap, root or a namespace is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ "${1:-}" != -* ]] || { sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2; }
skip() { echo "bench/bare_debian.sh: skipped: $1"; exit 77; }
[[ $(id -u) == 0 ]] || skip "it needs root, for debootstrap and chroot"
command -v debootstrap >/dev/null || skip "it needs debootstrap (apt install debootstrap)"
command -v ip >/dev/null || skip "it needs ip (apt install iproute2)"
unshare --mount --net true 2>/dev/null || skip "this machine allows no namespaces"
build=${TROUPE_BUILD:-build}
[[ -x $build/bin/troupe ]] || { echo "no program at $build/bin/troupe: run scripts/build, or set TROUPE_BUILD" >&2; exit 2; }
ways=("$@")
[[ ${#ways[@]} -gt 0 ]] || ways=(wheel bundle)
for way in "${ways[@]}"; do
  [[ $way == wheel || $way == bundle ]] || { echo "unknown way $way: wheel or bundle" >&2; exit 2; }
done
mirror=${MIRROR:-$(apt-get indextargets --format "\$(REPO_URI) \$(CODENAME) \$(COMPONENT)" 2>/dev/null | awk '$2 == "bookworm" && $3 == "main" {print $1; exit}')}
mirror=${mirror:-http://deb.debian.org/debian}

scratch=$(mktemp -d)
trap 'rm -rf --one-file-system "$scratch"' EXIT  # what is mounted is so in a namespace of its own
debian=$scratch/debian
log=$scratch/debootstrap.log
debootstrap --variant=minbase --include=python3,python3-pip,python3-venv,python3-numpy,zstd bookworm "$debian" "$mirror" >"$log" 2>&1 || {
  tail -5 "$log" >&2
  skip "debootstrap from $mirror failed"
}

# in_debian SCRIPT: runs it there as a shell script, with no network but loopback.
in_debian() {
  unshare --mount --net --pid --fork --propagation private bash -euo pipefail -c '
    ip link set lo up
    mount -t proc proc "$1/proc"
    mount --bind /dev "$1/dev"
    mount -t tmpfs tmpfs "$1/dev/shm"
    exec chroot "$1" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin /bin/bash -euo pipefail -c "$2"' _ "$debian" "$1"
}

# The beginning of each script there; `at WHAT` prints the seconds so far.
clock='
began=$EPOCHREALTIME
at() { awk -v now="$EPOCHREALTIME" -v began="$began" -v way="$way" -v what="$1" '\''BEGIN {printf "%-7s %6.1f s  %s\n", way, now - began, what}'\''; }
first_run() {  # TROUPE PYTHON PROGRAM
  "$1" --version
  at "troupe --version"
  "$1" launch --workers 2 --strategy easgd --plain -- "$2" "$3" >run.log 2>&1 || { cat run.log; exit 1; }
  grep "^evaluator: test loss" run.log
  at "end of the first run"
}
mkdir -p /root/work && cd /root/work'

for way in "${ways[@]}"; do
  rm -rf "$scratch/$way" "$debian/root/work"
  mkdir -p "$debian/root/work"
  if [[ $way == wheel ]]; then
    scripts/wheel --build "$build" --output "$scratch/$way" >/dev/null
    cp "$scratch/$way"/troupe-*.whl examples/numpy_mlp.py "$debian/root/work/"
    in_debian "way=wheel $clock
      python3 -m venv --system-site-packages venv
      at 'virtual environment'
      venv/bin/pip install --quiet troupe-*.whl
      at 'pip install'
      venv/bin/python3 -c 'import troupe; print(\"import troupe\", troupe.__version__)'
      at 'import troupe'
      first_run venv/bin/troupe venv/bin/python3 numpy_mlp.py"
  else
    scripts/bundle --build "$build" --output "$scratch/$way" >/dev/null
    cp "$scratch/$way"/troupe-*.tar.zst "$debian/root/work/"
    in_debian "way=bundle $clock
      tar --zstd -xf troupe-*.tar.zst
      rm troupe-*.tar.zst
      at 'unpacked'
      cd troupe-*
      PYTHONPATH=python python3 -c 'import troupe; print(\"import troupe\", troupe.__version__)'
      at 'import troupe'
      first_run bin/troupe python3 examples/numpy_mlp.py"
  fi
done
