#!/usr/bin/env bash
# What `troupe serve` costs a training that it shows. ONE training per row, during which windows of a few seconds with and without clients take turns (without,
# with, with, without, …), so that what the machine does meanwhile falls on both: single runs differ by much more than what is measured. Images/s of a window come
# from the run's own metrics.jsonl (`samples` and `t` of each worker's first and last report in it). A row says the mean difference of neighbours and its standard
# error. The first part of each window is not counted: clients connect, or leave. Pairs during which other programs used a processor for more than OTHERS % (10)
# of the time are left out.
#
# `own`: the run has core 0, service and clients have core 1. `same`: run and service share core 0, the clients have core 1. `shared`: the run has two workers, and
# run, service and clients share both cores. Real clients run on other machines; so that they cost the run little here, they have SCHED_IDLE in `shared`.
# Two processors of a virtual machine may be one core of the host, where work on one slows the other: with `own` and `same` a process of lowest priority keeps core
# 1 busy all the time, in windows without clients, too.
#
#   bench/service.sh [PAIRS [SECONDS of a window]]        default 40 pairs of 2 s
#
# BIN: where the programs are.  ROWS: some of "dashboards requests crowd idle".  PLACES: some of "own same shared".  CONFIG: what is trained.  KEEP: a directory for
# the windows' figures, which exists. What the kernel does for the crowd counts as other programs: OTHERS=1000 keeps its pairs.  Needs two cores. With the defaults a row takes 3.5 minutes, of the crowd 6.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ ${1:-} != -* ]] || { sed -n '2,17s/^# \{0,1\}//p' "$0"; exit 2; }
pairs=${1:-40}
seconds=${2:-2}
bin=$(realpath "${BIN:-build/bin}")
rows=${ROWS:-dashboards requests crowd idle}
places=${PLACES:-own same shared}
config=$(realpath "${CONFIG:-configs/glyphs-easgd.toml}")
scratch=$(mktemp -d)
service= training= fillers=()
cleanup() {
  kill "${fillers[@]}" 2> /dev/null || true
  [[ -z $training ]] || kill -INT "$training" 2> /dev/null || true
  [[ -z $service ]] || kill -INT "$service" 2> /dev/null || true
  wait
  rm -rf "$scratch"
}
trap cleanup EXIT
ulimit -n "$(ulimit -Hn)"

start_service() {  # start_service CORES
  taskset -c "$1" "$bin/troupe" serve --dir "$scratch/runs" --listen 127.0.0.1:0 > "$scratch/out" &
  service=$!
  until grep -qs serves "$scratch/out"; do kill -0 "$service"; sleep 0.05; done
  port=$(sed -n 's/.*127\.0\.0\.1:\([0-9]*\).*/\1/p' "$scratch/out" | head -n 1)
}
stop_service() { kill -INT "$service"; wait "$service"; service=; }

start_training() {  # start_training CORES WORKERS
  rm -f "$scratch/where"
  # No evaluation pauses it.
  taskset -c "$1" "$bin/troupe" train "$config" --quiet --directory-file "$scratch/where" --set run.dir="$scratch/runs" --set cluster.workers="$2" \
    --set run.epochs=100000 --set run.checkpoint_every=never --set run.evaluate_every="100000 epochs" > /dev/null 2>&1 &
  training=$!
  until [[ -s $scratch/where ]]; do kill -0 $training; sleep 0.05; done
  run=$(basename "$(cat "$scratch/where")")
  metrics=$scratch/runs/$run/metrics.jsonl
  until grep -qs '"kind":"worker"' "$metrics"; do kill -0 $training; sleep 0.05; done
  sleep 3
}
stop_training() { kill -INT "$training"; wait "$training" || true; training=; }

# Nanoseconds of a processor that the service has used.
used() { cat /proc/"$service"/task/*/schedstat | awk '{ used += $1 } END { printf "%.0f", used }'; }

# Seconds/100 that processors have been busy with other things than the benchmark.
others() {
  local pid files=()
  for pid in "$training" "$service" "${fillers[@]}" ${1:+"$1"}; do files+=("/proc/$pid/stat"); done
  awk 'FILENAME == "/proc/stat" { if ($1 == "cpu") busy = $2 + $3 + $4 + $7 + $8; next } { busy -= $14 + $15 } END { printf "%.0f", busy }' /proc/stat "${files[@]}"
}

window() {  # window KIND SETTLE COMMAND…: waits for its part that is not counted, then notes where the run's file and the service's time begin and end
  local kind=$1 settle=$2 clients= begin cpu busy
  shift 2
  if [[ $kind == with ]]; then "$@" >> "$scratch/clients" & clients=$!; fi
  sleep "$settle"
  begin=$(stat -c %s "$metrics") cpu=$(used) busy=$(others "$clients")
  sleep "$seconds"
  echo "$kind $begin $(stat -c %s "$metrics") $cpu $(used) $(($(others "$clients") - busy))" >> "$scratch/windows"
  [[ -z $clients ]] || wait "$clients"
}

compare() {  # compare NAME PLACE SETTLE CORES_OF_RUN WORKERS CORES_OF_SERVICE CORES_OF_CLIENTS WHAT COUNT [PER_S]
  local name=$1 place=$2 settle=$3 clients k
  start_service "$6"
  start_training "$4" "$5"
  if [[ $place == shared ]]; then
    clients=(chrt --idle 0)
  else
    clients=(taskset -c "$7")
    taskset -c 1 chrt --idle 0 "$BASH" -c 'while :; do :; done' & fillers=($!)
  fi
  clients+=("$bin/bench_http_clients" "$8" "$port" "$token" "$run" "$(awk -v a="$settle" -v b="$seconds" 'BEGIN { print a + b + 0.6 }')" "$settle" "$9" "${10:-}")
  : > "$scratch/windows"
  : > "$scratch/clients"
  for ((k = 0; k < pairs; ++k)); do
    if ((k % 2 == 0)); then
      window without "$settle"
      window with "$settle" "${clients[@]}"
    else
      window with "$settle" "${clients[@]}"
      window without "$settle"
    fi
  done
  stop_training
  LC_ALL=C awk -v name="$name" -v place="$place" -v seconds="$seconds" -v most="${OTHERS:-10}" '
    function value(line, key,    from) {
      from = index(line, "\"" key "\":")
      return from ? substr(line, from + length(key) + 3) + 0 : 0
    }
    FNR == NR { kind[++n] = $1; begin[n] = $2; end[n] = $3; cpu[n] = $5 - $4; others[n] = $6 / seconds; w = 1; next }
    {
      at += length($0) + 1
      while (w <= n && at > end[w]) ++w
      if (w > n || at <= begin[w] || index($0, "{\"kind\":\"worker\"") != 1) next
      who = w " " value($0, "worker")
      if (!(who in first)) { first[who] = value($0, "t"); done[who] = value($0, "samples") }
      last[who] = value($0, "t"); now[who] = value($0, "samples")
    }
    END {
      for (who in first) {
        split(who, part, " ")
        if (last[who] > first[who]) rate[part[1]] += (now[who] - done[who]) / (last[who] - first[who])
      }
      for (i = 1; i <= n; ++i) print kind[i], rate[i], cpu[i], others[i] > "/dev/stderr"
      for (i = 1; i < n; i += 2) {
        if (others[i] ^ 2 > most ^ 2 || others[i + 1] ^ 2 > most ^ 2) { ++out; continue }
        for (k = i; k <= i + 1; ++k) { sum[kind[k]] += rate[k]; used[kind[k]] += cpu[k] }
        d = kind[i] == "with" ? rate[i] / rate[i + 1] - 1 : rate[i + 1] / rate[i] - 1
        s += d; ss += d * d; ++m
      }
      if (!m) { print name, place ": other programs disturbed every pair"; exit }
      mean = s / m; error = m > 1 ? sqrt((ss - m * mean * mean) / (m - 1) / m) : 0
      printf "%-12s %-7s %8.0f images/s without, %8.0f with: %+.2f %% ± %.2f (%d pairs, %d left out); service %.2f %% of a processor, %.2f without", name, place, \
        sum["without"] / m, sum["with"] / m, 100 * mean, 100 * error, m, out, used["with"] / m / seconds / 1e7, used["without"] / m / seconds / 1e7
    }' "$scratch/windows" "$metrics" 2> "$scratch/figures"
  awk '/VmHWM/ { printf ", at most %.0f MB\n", $2 / 1024 }' "/proc/$service/status"
  echo "    of the last window: $(tail -n 1 "$scratch/clients"); with the fewest updates: $(sort -t: -k3g "$scratch/clients" | head -n 1)"
  [[ -z ${KEEP:-} ]] || cp "$scratch/figures" "$KEEP/$name-$place"
  stop_service
  rm -rf "${scratch:?}/runs/$run"
  if ((${#fillers[@]})); then kill "${fillers[@]}"; wait "${fillers[@]}" 2> /dev/null || true; fillers=(); fi
}

token=$("$bin/troupe" serve --dir "$scratch/runs" --add-user bench --role admin | sed 's/.*: //')
echo "$(nproc) cores ($(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)), load average $(cut -d' ' -f1-3 /proc/loadavg)"
for place in $places; do
  case $place in
    own) cores=(0 1 1 1) ;;      # of the run, its workers, of the service, of the clients
    same) cores=(0 1 0 1) ;;
    *) cores=(0-1 2 0-1 0-1) ;;
  esac
  [[ $rows != *dashboards* ]] || compare dashboards "$place" 0.4 "${cores[@]}" dashboards 20
  [[ $rows != *requests* ]] || compare requests "$place" 0.4 "${cores[@]}" dashboards 20 10
  [[ $rows != *crowd* ]] || compare crowd "$place" 2 "${cores[@]}" crowd 10000
done
if [[ $rows == *idle* ]]; then
  start_service 0-1
  sleep 5
  before=$(used)
  sleep 30
  awk -v t=$(($(used) - before)) -v r="$(awk '/VmRSS/ {print $2 / 1024}' "/proc/$service/status")" 'BEGIN { printf "idle service: %.3f %% of a core, %.1f MB\n", t / 30 / 1e7, r }'
  stop_service
fi
