#!/usr/bin/env bash
# What `troupe serve` costs a training that it shows: 20 dashboards, each with the run's events and its state ten times a second; then 10,000 connections; then
# what it costs itself when nobody asks. `own`: the run has a core, service and clients have the other. `same`: run and service share a core, and the clients have
# the other. `shared`: run, service and clients share both: then the clients, which run elsewhere in earnest, cost the run, too. With and without clients take
# turns; of each the median. Two processors of a virtual machine may be one core of the host, where work on one slows the other: with `own` and `same` a process of
# lowest priority keeps the other one busy all the time, without clients, too.
#
#   bench/service.sh [PAIRS [SECONDS of a run]]        default 5 pairs of 12 s
#
# BIN: where the programs are.  ONLY: some of "dashboards crowd idle".  PLACES: some of "own same shared".  CONFIG: what is trained.  Needs two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ ${1:-} != -* ]] || { sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2; }
pairs=${1:-5}
seconds=${2:-12}
bin=$(realpath "${BIN:-build/bin}")
only=${ONLY:-dashboards crowd idle}
places=${PLACES:-own same shared}
config=$(realpath "${CONFIG:-configs/glyphs-easgd.toml}")
scratch=$(mktemp -d)
service= filler=
cleanup() { [[ -z $filler ]] || kill "$filler" 2> /dev/null || true; [[ -z $service ]] || kill -INT "$service" 2> /dev/null || true; wait; rm -rf "$scratch"; }
trap cleanup EXIT
ulimit -n "$(ulimit -Hn)"

start_service() {  # start_service CORES
  taskset -c "$1" "$bin/troupe" serve --dir "$scratch/runs" --listen 127.0.0.1:0 > "$scratch/out" &
  service=$!
  until grep -qs serves "$scratch/out"; do kill -0 "$service"; sleep 0.05; done
  port=$(sed -n 's/.*127\.0\.0\.1:\([0-9]*\).*/\1/p' "$scratch/out" | head -n 1)
}
stop_service() { kill -INT "$service"; wait "$service"; service=; }

ticks() { awk '{print $14 + $15}' "/proc/$1/stat"; }
# Trains for about $seconds; prints its images/s. With clients: `train CORES WORKERS clients CORES_OF_CLIENTS WHAT COUNT [PER_S]`.
train() {
  local cores=$1 workers=$2 run before
  rm -f "$scratch/where"
  taskset -c "$cores" "$bin/troupe" train "$config" --quiet --json --directory-file "$scratch/where" --set run.dir="$scratch/runs" \
    --set cluster.workers="$workers" --set run.epochs=100000 --set run.checkpoint_every=never > "$scratch/summary" 2> /dev/null &
  local training=$!
  until [[ -s $scratch/where ]]; do kill -0 $training; sleep 0.05; done
  run=$(basename "$(cat "$scratch/where")")
  until grep -qs '"kind":"worker"' "$scratch/runs/$run/metrics.jsonl"; do kill -0 $training; sleep 0.05; done
  before=$(ticks "$service")
  if [[ ${3:-} == clients ]]; then
    { time taskset -c "$4" "$bin/bench_http_clients" "$5" "$port" "$token" "$run" "$seconds" "$6" "${7:-}" > "$scratch/clients"; } 2> "$scratch/time"
  else
    sleep "$seconds"
  fi
  awk -v t=$(($(ticks "$service") - before)) -v hz="$(getconf CLK_TCK)" -v s="$seconds" 'BEGIN { printf "%.1f", 100 * t / hz / s }' > "$scratch/cpu"
  kill -INT $training
  wait $training || true
  sed -n 's/.*"images_per_s":\([0-9.]*\).*/\1/p' "$scratch/summary"
}
median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

token=$("$bin/troupe" serve --dir "$scratch/runs" --add-user bench --role admin | sed 's/.*: //')
echo "$(nproc) cores ($(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)), load average $(cut -d' ' -f1-3 /proc/loadavg)"

TIMEFORMAT='%U %S'
compare() {  # compare NAME PLACE CORES_OF_RUN WORKERS CORES_OF_SERVICE CORES_OF_CLIENTS WHAT COUNT [PER_S]
  local k without=() with=() cpu=()
  start_service "$5"
  if [[ $2 != shared ]]; then taskset -c 1 chrt --idle 0 "$BASH" -c 'while :; do :; done' & filler=$!; fi
  for ((k = 0; k < pairs; ++k)); do
    without+=("$(train "$3" "$4")")
    with+=("$(train "$3" "$4" clients "$6" "$7" "$8" "${9:-}")")
    cpu+=("$(cat "$scratch/cpu")")
  done
  local a b
  a=$(printf '%s\n' "${without[@]}" | median)
  b=$(printf '%s\n' "${with[@]}" | median)
  awk -v n="$1" -v p="$2" -v a="$a" -v b="$b" -v c="$(printf '%s\n' "${cpu[@]}" | median)" -v u="$(awk -v s="$seconds" '{ print 100 * ($1 + $2) / s }' "$scratch/time")" -v r="$(awk '/VmHWM/ {print $2 / 1024}' "/proc/$service/status")" \
    'BEGIN { printf "%-28s %-8s %8.0f images/s without, %8.0f with: %6.2f %%; service %.1f %% of a core, at most %.0f MB; clients %.1f %% of a core\n", n, p, a, b, 100 * (b / a - 1), c, r, u }'
  echo "    without: ${without[*]}; with: ${with[*]}; clients of the last: $(cat "$scratch/clients")"
  stop_service
  [[ -z $filler ]] || { kill "$filler"; wait "$filler" 2> /dev/null || true; filler=; }
}

for place in $places; do
  case $place in
    own) cores=(0 1 1 1) ;;      # of the run, its workers, of the service, of the clients
    same) cores=(0 1 0 1) ;;
    *) cores=(0-1 2 0-1 0-1) ;;
  esac
  [[ $only != *dashboards* ]] || compare "20 dashboards at 10 Hz" "$place" "${cores[@]}" dashboards 20 10
  [[ $only != *crowd* ]] || compare "10,000 connections" "$place" "${cores[@]}" crowd 10000
done
if [[ $only == *idle* ]]; then
  rm -rf "${scratch:?}/runs"/2*
  start_service 0-1
  sleep 5
  before=$(ticks "$service")
  sleep 30
  awk -v t=$(($(ticks "$service") - before)) -v hz="$(getconf CLK_TCK)" -v r="$(awk '/VmRSS/ {print $2 / 1024}' "/proc/$service/status")" \
    'BEGIN { printf "idle service: %.2f %% of a core, %.1f MB\n", 100 * t / hz / 30, r }'
  stop_service
fi
