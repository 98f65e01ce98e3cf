#!/usr/bin/env bash
# Usage: mpi_ranks.sh RANKS PROGRAM: runs it under mpirun. Exit code 77: there is no mpirun here.
set -euo pipefail
if ! command -v mpirun >/dev/null; then
  echo "skipped: no mpirun (Debian: openmpi-bin)"
  exit 77
fi
as_root=()
[ "$(id -u)" -ne 0 ] || as_root=(--allow-run-as-root)
exec mpirun "${as_root[@]}" --oversubscribe --bind-to none -n "$1" "$2" </dev/null
