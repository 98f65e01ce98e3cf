#!/usr/bin/env bash
# What a run store answers and how fast: 100,000 runs and 10 million points, in a store that is filled through the library, beside directories of these runs. Through
# the library, by `troupe runs` (a process each, with its look at all directories) and by requests to `troupe serve` (one that comes when the last look is young, and
# one that has to look). Then directories of whole runs are read, and looked at again. The target is 100 ms for list and compare. Caches are warm.
#
#   bench/run_store.sh [RUNS] [POINTS of a run] [ROUNDS] [DIRECTORIES that are read]     default 100000 100 11 10000
#
# BIN: where the programs are.  FOLDER: is kept, and is used again if it has a store; else a new one in TMPDIR, on a local disk with 3 GB and 300,000 files.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ ${1:-} != -* ]] || { sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2; }
bin=${BIN:-build/bin}
for program in bench_run_store troupe; do
  [[ -x $bin/$program ]] || { echo "no program at $bin/$program: run scripts/build, or set BIN" >&2; exit 2; }
done
rounds=${3:-11}
service= folder=${FOLDER:-}
cleanup() {
  [[ -z $service ]] || kill -INT "$service" 2> /dev/null || true
  wait
  [[ -n ${FOLDER:-} ]] || rm -rf "$folder"
}
trap cleanup EXIT
[[ -n $folder ]] || folder=$(mktemp -d)
mkdir -p "$folder"
echo "$(nproc) cores ($(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)), load average $(cut -d' ' -f1-3 /proc/loadavg)"
"$bin/bench_run_store" "$folder" "$@"

measure() {  # measure WHAT COMMAND…: the median and the longest of the rounds, in ms
  local what=$1 begin end
  shift
  for ((i = 0; i < rounds; ++i)); do
    [[ -z ${PAUSE:-} ]] || sleep "$PAUSE"
    begin=${EPOCHREALTIME/./}
    "$@" > "$folder/answer"
    end=${EPOCHREALTIME/./}
    echo $((end - begin))
  done | sort -n | awk -v what="$what" '{ v[NR] = $1 / 1000 } END { printf "%-80s %8.0f %8.0f\n", what, v[int((NR + 1) / 2)], v[NR] }'
}
names() { sed -n 's/.*"run":"\([^"]*\)".*/\1/p' "$folder/names"; }

runs=("$bin/troupe" runs)
dir=(--dir "$folder/full")
"${runs[@]}" list "${dir[@]}" --json --columns run --limit 200 > "$folder/names"
printf '\n%-80s %8s %8s\n' "a command" "median" "longest"
measure "troupe --version (what a process costs)" "$bin/troupe" --version
measure "runs list" "${runs[@]}" list "${dir[@]}"
measure "runs list --sort accuracy" "${runs[@]}" list "${dir[@]}" --sort accuracy
measure "runs list --sort wall_s" "${runs[@]}" list "${dir[@]}" --sort wall_s
measure "runs list strategy=easgd accuracy>0.5 --sort accuracy" "${runs[@]}" list "${dir[@]}" strategy=easgd 'accuracy>0.5' --sort accuracy
measure "runs list lr<0.05" "${runs[@]}" list "${dir[@]}" 'lr<0.05'
measure "runs list time.result9>100 strategy!=bsp --sort accuracy" "${runs[@]}" list "${dir[@]}" 'time.result9>100' 'strategy!=bsp' --sort accuracy
measure "runs show" "${runs[@]}" show "${dir[@]}" "$(names | head -n 1)"
for count in 2 10 200; do
  mapfile -t some < <(names | head -n "$count")
  measure "runs compare, $count runs" "${runs[@]}" compare "${dir[@]}" "${some[@]}"
done

"$bin/troupe" serve "${dir[@]}" --remove-user bench > "$folder/answer" 2>&1 || true  # of a folder that is used again
token=$("$bin/troupe" serve "${dir[@]}" --add-user bench --role read | sed 's/.*: //')
"$bin/troupe" serve "${dir[@]}" --listen 127.0.0.1:0 > "$folder/out" &
service=$!
until grep -qs serves "$folder/out"; do kill -0 "$service"; sleep 0.05; done
port=$(sed -n 's/.*127\.0\.0\.1:\([0-9]*\).*/\1/p' "$folder/out" | head -n 1)
ask() { curl --silent --fail --header "Authorization: Bearer $token" "http://127.0.0.1:$port/api/v1/$1"; }
request() {  # request WHAT PATH: when the last look is young, and after a pause
  measure "GET $1" ask "$2"
  PAUSE=0.6 measure "GET $1, with a look" ask "$2"
}
printf '\n%-80s %8s %8s\n' "a request, by curl" "median" "longest"
measure "GET openapi.json (what curl costs)" ask openapi.json
request "runs" runs
PAUSE=10.5 rounds=3 measure "GET runs, when nobody has asked for ten seconds" ask runs
request "runs?sort=wall_s" 'runs?sort=wall_s'
request "runs?filter=strategy=easgd accuracy>0.5&sort=accuracy" 'runs?filter=strategy%3Deasgd%20accuracy%3E0.5&sort=accuracy'
request "runs?filter=lr<0.05" 'runs?filter=lr%3C0.05'
request "runs?filter=time.result9>100 strategy!=bsp&sort=accuracy" 'runs?filter=time.result9%3E100%20strategy!%3Dbsp&sort=accuracy'
request "runs/{run}" "runs/$(names | head -n 1)"
for count in 2 10 200; do
  request "compare of $count runs" "compare?$(names | head -n "$count" | sed 's/^/run=/' | paste -sd '&')"
done
request "sweeps" sweeps
