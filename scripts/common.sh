# shellcheck shell=bash
# Sourced by the scripts beside it. Defines ROOT, and what they share.
# shellcheck disable=SC2034
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

die() {
  echo "${0##*/}: $*" >&2
  exit 1
}

# Prints the comment block at the top of the calling script, without the shebang.
usage() { sed -n '2,/^[^#]/{/^#/{s/^# \{0,1\}//p}}' "$0"; }

# As many compilers as there are cores, but 2 GiB of memory for each: files that include CAF need that much.
build_jobs() {
  local cores memory_gib
  cores="$(nproc)"
  memory_gib="$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)"
  local jobs=$((memory_gib / 2 < cores ? memory_gib / 2 : cores))
  echo $((jobs > 0 ? jobs : 1))
}
