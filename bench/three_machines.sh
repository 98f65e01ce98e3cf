#!/usr/bin/env bash
# Three unequal machines that train examples/gpt.py together over slow links, and how much of their speed faults cost (docs/guests/three-machines.md).
# Hosts 1, 2 and 3 are network namespaces, joined by links of RATE each way, and cgroups with $FULL, half and a quarter of that in per cent of a
# processor. `troupe launch` (coordinator, server, evaluator) runs on host 1, within its share. Parts, each of which may be run by itself:
#   solo    the script without Troupe on each host, one after the other, then on all at once: the sum is what three machines could do at best
#   probe   a short run on the three hosts: the forecast uses its step times
#   clean   a forecast, then a run without faults
#   faults  the same samples; host 3 joins late, host 2 is stopped for 20 s, the program of host 1's worker gets SIGKILL
#   ddp     DistributedDataParallel over Gloo on the same hosts and links; then with the same faults, until it ends or hangs
#   local   the same with post-local SGD: the mean of the models every TAU steps
#   loss    the test loss of DDP's arithmetic (one process with three times the batch), same text and schedule, beside that of the clean run
#   replay  troupe replay of the clean run and of the run with faults
# then a report of all parts that have results. What limits it: the server's share of host 1; exchanges of 8 x parameters bytes over RATE, which overlap with
# steps; newcomers, which begin with an import of torch on a fraction of a processor and for which training pauses.
#
#   bench/three_machines.sh [PART]...     default: all, about 15 minutes; report: the report alone
#
# OUT: folder of the results, in which later parts find those of earlier ones (default build/three_machines).  SECONDS_OF_RUN: how long the clean
# run shall take (60).  SECONDS_OF_FAULTS: the same of the run with faults (as SECONDS_OF_RUN); what faults cost does not grow with it.  RATE (100mbit), FULL (80), TAU (64), BATCH (4), STRATEGY (easgd), SET (more --set of the runs).  TROUPE: the program (default
# build/bin/troupe).  PYTHON: with torch (default /usr/bin/python3).  Root only; leaves nothing behind but OUT. Exit code 1: a part failed.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ ${1:-} != -* ]] || { sed -n '2,20s/^# \{0,1\}//p' "$0"; exit 2; }
parts=("$@")
[[ ${#parts[@]} -gt 0 ]] || parts=(solo probe clean faults ddp local loss replay)
for part in "${parts[@]}"; do
  [[ " solo probe clean faults ddp local loss replay report " == *" $part "* ]] || { echo "no part '$part': see bench/three_machines.sh --help" >&2; exit 2; }
done
# shellcheck source=SCRIPTDIR/hosts.sh
source bench/hosts.sh
# shellcheck source=SCRIPTDIR/machines.sh
source bench/machines.sh
# shellcheck source=SCRIPTDIR/peers.sh
source bench/peers.sh
python=${PYTHON:-/usr/bin/python3}
troupe=$(realpath "${TROUPE:-build/bin/troupe}")
seconds=${SECONDS_OF_RUN:-60}
faults_seconds=${SECONDS_OF_FAULTS:-$seconds}
rate=${RATE:-100mbit} full=${FULL:-80} tau=${TAU:-64} batch=${BATCH:-4} strategy=${STRATEGY:-easgd}
read -ra more <<< "${SET:-}"
shape=(--layers 2 --width 256 --heads 4 --context 48 --lr 1e-3)
context=48
cores=$(nproc)
out=${OUT:-build/three_machines}
[[ -x $troupe ]] || skip "no program at $troupe: run scripts/build, or set TROUPE"
"$python" -c 'import torch.distributed, numpy' 2> /dev/null || skip "$python has no torch and numpy (PYTHON names another one)"
enter_machines "$@"

export OMP_NUM_THREADS=1 PYTHONPATH=$PWD/python GLOO_SOCKET_IFNAME=eth0 MASTER_ADDR=10.0.0.1 WORLD_SIZE=3
torch_gflops "$python" > /dev/null || exit 77
mkdir -p "$out"
out=$(realpath "$out")
settings="rate=$rate full=$full tau=$tau batch=$batch strategy=$strategy seconds=$seconds faults=$faults_seconds set=${SET:-}"
if [[ ! -e $out/settings ]]; then
  echo "$settings" > "$out/settings"
elif [[ $(cat "$out/settings") != "$settings" ]]; then
  printf '%s has results of other settings: %s\nSet the same ones, or another OUT.\n' "$out" "$(cat "$out/settings")" >&2
  exit 2
fi
text=$out/text
[[ -e $text ]] || "$python" -c 'import sys; sys.path[:0] = ["examples", "python"]; import gpt; open(sys.argv[1], "wb").write(gpt.debian_text(16_000_000))' "$text"
make_certificates "$troupe" 3
join_hosts 3
limit_link "$rate" 64kb
for host in 1 2 3; do limit_host $host $((full >> (host - 1))); done
echo "three hosts, $((full)), $((full / 2)) and $((full / 4)) % of a processor, $rate each way; load average: $(cut -d' ' -f1-3 /proc/loadavg), $cores cores"

# ---- the script in other ways

# Starts bench/guests/three_ways.py on a host, as $!; what it prints goes to $out/NAME-HOST: script HOST NAME WAY OPTIONS…
script() {
  local host=$1 name=$2
  shift 2
  ( echo "started $EPOCHREALTIME"; export RANK=$((host - 1)); become "$host" timeout -k 5 $((seconds + 300)) "$python" bench/guests/three_ways.py "$@" "${shape[@]}" --batch "$batch" --text "$text" ) \
    > "$out/$name-$host" 2> "$out/$name-$host.err" &
}

# Waits for processes; fails with the last lines of NAME's hosts where one failed: all_done NAME PROCESS…
all_done() {
  local name=$1 pid failed=
  shift
  for pid in "$@"; do wait "$pid" || failed=yes; done
  [[ -z $failed ]] || { tail -n 3 "$out/$name"-?.err >&2; return 1; }
}

# All three in one way: scripts NAME WAY OPTIONS…
scripts() {
  local host pids=()
  MASTER_PORT=$((29500 + ++port))
  export MASTER_PORT
  for host in 1 2 3; do
    script "$host" "$@"
    pids+=($!)
  done
  all_done "$1" "${pids[@]}"
}

# ---- the engine

start_node() {  # HOST
  ( become "$1" "$troupe" node --programs --listen "10.0.0.$1:$node_port" --ca "$certs/ca.pem" --cert "$certs/host$1.pem" --key "$certs/host$1.key" ) \
    > "$out/$run-node$1.log" 2>&1 &
  node[$1]=$!
  disown  # so that bash does not report its end
}

listens() { wait_for_node "$1" "$node_port" "$out/$run-node$1.log" "${node[$1]}"; }  # HOST

# Starts a run NAME on the nodes of HOSTS as $launch; its directory is the one in $out/NAME, its summary $out/NAME.json:
# start_run NAME BYTES HOSTS…
start_run() {
  run=$1
  local bytes=$2 host set=() option
  shift 2
  rm -rf "${out:?}/$run"
  node_port=$((7300 + ++port))
  node=()
  for host in "$@"; do start_node "$host"; done
  for host in "$@"; do listens "$host"; done
  for option in run.checkpoint_every=never run.tensorboard=false run.journal=all strategy.overlap=skip "strategy.tau=$tau" "data.batch=$batch" cluster.pinning=off "${more[@]}"; do
    set+=(--set "$option")
  done
  ( become 1 timeout -k 5 $(((seconds > faults_seconds ? seconds : faults_seconds) * 3 + 240)) "$troupe" launch --workers 3 --strategy "$strategy" --nodes "10.0.0.1:$node_port,10.0.0.2:$node_port,10.0.0.3:$node_port" \
      --min-nodes $# --ca "$certs/ca.pem" --cert "$certs/host1.pem" --key "$certs/host1.key" --plain --json --set "run.dir=\"$out/$run\"" "${set[@]}" \
      -- "$python" examples/gpt.py "${shape[@]}" --batch "$batch" --text "$text" --bytes "$bytes" ) > "$out/$run.json" 2> "$out/$run.log" &
  launch=$!
}

# Waits for the run, and keeps its directory's name.
end_run() {
  local rc=0
  wait "$launch" || rc=$?
  clear_hosts
  [[ $rc == 0 ]] || { tail -n 5 "$out/$run.log" >&2; echo "$run: exit code $rc" >&2; return 1; }
}

# Bytes of text for so many samples, training and tests: bytes_for SAMPLES
bytes_for() { echo $((($1 * 20 / 19 + 1) * context)); }

# Samples per second that a run is expected to reach: the probe's, or else 0.9 of the sum of the scripts.
expected_rate() { "$python" bench/guests/three_report.py "$out" --expected; }

samples_of_run() { "$python" -c 'import sys; print(int(float(sys.argv[1]) * float(sys.argv[2])))' "$(expected_rate)" "$1"; }

# ---- faults: when, in seconds from the beginning of training

frozen=20
times_within() { late=$(($1 * 8 / 100)) freeze=$(($1 * 40 / 100)) killed=$(($1 * 60 / 100 + frozen)); }  # SECONDS
times_within "$seconds"

event() { echo "$EPOCHREALTIME $*" >> "$out/$fault_run.events"; }

# Sleeps until SECONDS after $began, while PROCESS lives: until_s SECONDS PROCESS
until_s() {
  while kill -0 "$2" 2> /dev/null && ((SECONDS - began < $1)); do sleep 0.2; done
  kill -0 "$2" 2> /dev/null
}

# The three faults; LATE is a command that starts host 3, VICTIM one that prints the process to kill: inject NAME PROCESS LATE VICTIM
inject() {
  local process=$2 victim
  fault_run=$1
  until_s "$late" "$process" || { event ended; return; }
  event late 3
  "$3"
  until_s "$freeze" "$process" || { event ended; return; }
  event stopped 2
  signal_host 2 STOP
  until_s $((freeze + frozen)) "$process" || true
  signal_host 2 CONT
  event continued 2
  until_s "$killed" "$process" || { event ended; return; }
  victim=$("$4")
  [[ -n $victim ]] || { echo "no program to kill" >&2; return 1; }
  kill -KILL "$victim"
  event killed 1
}

# The program of host 1's worker: the node's child is the outer keeper, whose child the inner one, whose first child the program.
worker_program() {
  local process=${node[1]} generation
  for generation in 1 2 3; do process=$(pgrep -o -P "$process") || return 0; done
  echo "$process"
}

# ---- parts

part_solo() {
  local host
  for host in 1 2 3; do
    script "$host" solo alone --seconds 15
    all_done solo $!
  done
  scripts together alone --seconds 30
}

part_probe() {
  start_run probe "$(bytes_for "$(samples_of_run 20)")" 1 2 3
  end_run
  printf '[hosts.machine]\ncount = 3\n[network]\ngbit_per_s = %s\nlatency_us = 100\n' "$("$python" -c 'import sys; print(float(sys.argv[1]) / 1000)' "${rate%mbit}")" > "$out/cluster.toml"
}

part_clean() {
  local samples bytes
  samples=$(samples_of_run "$seconds")
  bytes=$(bytes_for "$samples")
  echo "$bytes" > "$out/bytes"
  samples=$(((bytes - 1) / context))
  "$troupe" simulate "$out"/probe/*/config.toml --from "$out"/probe/* --cluster "$out/cluster.toml" --json --set "data.train_samples=$((samples - samples / 20))" \
    > "$out/forecast.json" 2> "$out/forecast.log" || { tail -n 3 "$out/forecast.log" >&2; return 1; }
  start_run clean "$bytes" 1 2 3
  end_run
}

late_node() {
  start_node 3
  listens 3
}

part_faults() {
  local try bytes
  bytes=$(cat "$out/bytes")
  [[ $faults_seconds == "$seconds" ]] || bytes=$(bytes_for "$(samples_of_run "$faults_seconds")")
  times_within "$faults_seconds"
  : > "$out/faults.events"
  start_run faults "$bytes" 1 2
  for ((try = 0; try < 600; ++try)); do
    kill -0 "$launch" 2> /dev/null || break
    ! grep -q '"kind":"started"' "$out"/faults/*/metrics.jsonl 2> /dev/null || break
    sleep 0.2
  done
  began=$SECONDS
  fault_run=faults
  event began
  inject faults "$launch" late_node worker_program
  end_run
}

# As one way of torch's: clean, then with the faults until all have ended.
peers() {  # NAME OPTIONS…
  local name=$1 host try alive
  shift
  scripts "$name" "$@" --seconds 40
  MASTER_PORT=$((29500 + ++port))
  export MASTER_PORT
  fault_run=$name-faults
  : > "$out/$fault_run.events"
  pids=()
  for host in 1 2; do
    script "$host" "$fault_run" "$@" --seconds $((seconds * 2))
    pids[host]=$!
  done
  began=$SECONDS
  event began
  late_options=("$@")
  inject "$fault_run" "${pids[1]}" late_script victim_script
  for ((try = 0; try < 300; ++try)); do
    alive=
    for host in 2 3; do ! kill -0 "${pids[host]}" 2> /dev/null || alive=yes; done
    [[ -n $alive ]] || break
    sleep 0.5
  done
  event "$([[ -n $alive ]] && echo hangs || echo dead)"
  clear_hosts
}
late_script() {
  script 3 "$fault_run" "${late_options[@]}" --seconds $((seconds * 2))
  pids[3]=$!
}
victim_script() { ps -o pid= --ppid "${pids[1]}" | head -n 1; }  # of timeout

part_ddp() { peers ddp ddp; }
part_local() { peers local local --tau "$tau"; }

part_loss() {
  timeout -k 5 700 "$python" bench/guests/three_ways.py alone "${shape[@]}" --batch $((3 * batch)) --text "$text" --bytes "$(cat "$out/bytes")" \
    > "$out/loss" 2> "$out/loss.err" || { tail -n 3 "$out/loss.err" >&2; return 1; }
}

part_replay() {
  local run rc failed=0
  for run in clean faults; do
    [[ -d $out/$run ]] || continue
    rc=0
    timeout -k 5 600 "$troupe" replay "$out/$run"/* --json > "$out/replay-$run.json" 2> "$out/replay-$run.log" || rc=$?
    echo "$rc" > "$out/replay-$run.rc"
    [[ $rc == 0 ]] || failed=1
  done
  return "$failed"
}

part_report() { :; }

port=0 failed=0
for part in "${parts[@]}"; do
  port=$((port + 10)) part_began=$SECONDS
  set +e
  ( set -e; "part_$part" )
  rc=$?
  set -e
  clear_hosts
  [[ $part == report ]] || echo "$part: $([[ $rc == 0 ]] && echo "done" || echo "FAILED"), $((SECONDS - part_began)) s"
  [[ $rc == 0 ]] || failed=1
done
"$python" bench/guests/three_report.py "$out" || failed=1
exit $failed
