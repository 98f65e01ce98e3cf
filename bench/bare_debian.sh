#!/usr/bin/env bash
# How long a new user waits: from the packed program to the end of the first run, on a bare Debian 12 (debootstrap, minbase) that has nothing of
# Troupe's, no compiler and no library that a program of Python and numpy does not need.
#   wheel    python3 -m venv, pip install of what scripts/wheel makes, `troupe --version`, `import troupe`, a launch of examples/numpy_mlp.py
#   bundle   unpacking what scripts/bundle makes, the same launch with it
# Debian's own packages (python3, python3-venv, python3-numpy, zstd) are installed before the clock starts; pip fetches nothing. What limits it: pip
# and tar write 60 to 150 MB; a launch starts three Pythons. The last line is JSON. Needs root, debootstrap, a mirror of Debian and 1 GB in
# TMPDIR (default /var/tmp); where one is missing it says so and ends with exit code 77. Leaves nothing behind.
#
#   bench/bare_debian.sh [wheel|bundle]...      default: both
#
# WHEEL, BUNDLE: the packed program (default: packed from the finished build). MIRROR: of Debian (default http://deb.debian.org/debian).
# SUITE: default bookworm. BARE: a folder that debootstrap has made with these packages, to be copied.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ "${1:-}" != -* ]] || { sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 2; }
skip() {
  echo "${0##*/}: left out: $*" >&2
  exit 77
}

if [[ ${TROUPE_BARE_SCRATCH:-} == "" ]]; then
  [[ $(id -u) == 0 ]] || skip "it makes a Debian of its own, which needs root"
  for tool in debootstrap unshare chroot; do
    command -v "$tool" > /dev/null || skip "there is no '$tool' (Debian: debootstrap, util-linux, coreutils)"
  done
  scratch=$(mktemp -d -p "${TMPDIR:-/var/tmp}")
  trap 'rm -rf --one-file-system "$scratch"' EXIT
  # What is mounted and started within ends with it.
  TROUPE_BARE_SCRATCH=$scratch unshare --mount --pid --fork --kill-child "$BASH" "$0" "$@"
  exit
fi
scratch=$TROUPE_BARE_SCRATCH
what=("$@")
[[ ${#what[@]} -gt 0 ]] || what=(wheel bundle)
for way in "${what[@]}"; do [[ $way == wheel || $way == bundle ]] || { echo "$way: wheel or bundle" >&2; exit 2; }; done

packed() {  # wheel|bundle: its path
  case $1 in
    wheel) [[ ${WHEEL:-} ]] || scripts/wheel --output "$scratch/packed" > "$scratch/log" || { cat "$scratch/log" >&2; exit 1; } ;;
    bundle) [[ ${BUNDLE:-} ]] || scripts/bundle --output "$scratch/packed" > "$scratch/log" || { cat "$scratch/log" >&2; exit 1; } ;;
  esac
  if [[ $1 == wheel ]]; then echo "${WHEEL:-$(echo "$scratch"/packed/*.whl)}"; else echo "${BUNDLE:-$(echo "$scratch"/packed/*.tar.zst)}"; fi
}

bare=$scratch/bare
if [[ ${BARE:-} ]]; then
  cp -a "$BARE" "$bare"
else
  debootstrap --variant=minbase --include=python3,python3-venv,python3-numpy,zstd "${SUITE:-bookworm}" "$bare" \
    "${MIRROR:-http://deb.debian.org/debian}" > "$scratch/log" 2>&1 || { tail -3 "$scratch/log" >&2; skip "debootstrap failed"; }
fi
mount -t proc proc "$bare/proc"
mount -t tmpfs tmpfs "$bare/dev/shm"
cp examples/numpy_mlp.py "$bare/root/"

# In the bare Debian, in /root, without a variable of this environment.
inside() { chroot "$bare" /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/bin:/bin:/usr/sbin:/sbin /bin/bash -euo pipefail -c "cd /root; $1"; }
now() { date +%s.%N; }
results=()
# timed WAY WHAT COMMAND: runs it, prints when it ended, counted from began.
timed() {
  inside "$3" > "$scratch/log" 2>&1 || { echo "$1: $2: failed" >&2; cat "$scratch/log" >&2; exit 1; }
  local at
  at=$(python3 -c 'import sys; print(f"{float(sys.argv[1]) - float(sys.argv[2]):.1f}")' "$(now)" "$began")
  printf '%-7s %-46s ended at %5s s\n' "$1" "$2" "$at"
  results+=("\"$1 $2\": $at")
}

for way in "${what[@]}"; do
  path=$(packed "$way")
  cp "$path" "$bare/root/"
  file=$(basename "$path")
  began=$(now)
  if [[ $way == wheel ]]; then
    timed wheel "python3 -m venv" "python3 -m venv --system-site-packages venv"
    timed wheel "pip install" "venv/bin/pip install --no-index $file"
    timed wheel "troupe --version, import troupe" "venv/bin/troupe --version; venv/bin/python3 -c 'import troupe; print(troupe.__version__)'"
    timed wheel "first run of numpy_mlp.py, two workers" "venv/bin/troupe launch --workers 2 --strategy easgd -- venv/bin/python3 numpy_mlp.py"
  else
    timed bundle "tar --extract" "tar --extract --file $file"
    timed bundle "first run of numpy_mlp.py, two workers" "./${file%.tar.zst}/bin/troupe launch --workers 2 --strategy easgd -- python3 numpy_mlp.py"
  fi
  grep -E 'test (loss|accuracy)' "$scratch/log" | sed 's/^/        /'
done
(IFS=,; echo "{${results[*]}}")
