#!/usr/bin/env bash
# The tables of two papers, forecast by the simulator on descriptions of their testbeds: paper, forecast, error. The last two lines are
# the shares of predicted cells within 10 % and within 20 %.
#
#   bench/papers/run.sh        TROUPE: the program (default build/bin/troupe)
set -euo pipefail
cd "$(dirname "$0")/../.."
exec python3 bench/papers/table.py
