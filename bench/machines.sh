# shellcheck shell=bash disable=SC2154  # hosts: set by join_hosts
# Sourced after hosts.sh by benchmarks whose hosts have processors of unequal speed: each host of $hosts is also a cgroup (cpu) with a quota of
# processor time, which holds all that runs on it. Needs the cpu controller of cgroup v1 or v2; without it the script ends with exit code 77.
#
# The groups lie outside of the namespaces. They are removed when the script ends; where it was killed by SIGKILL, the next one removes them.

readonly kPeriodUs=${PERIOD_US:-20000}  # of a quota: a host that has used its share stands still until the next period

# In place of enter_namespaces.
enter_machines() {
  if [[ -w /sys/fs/cgroup/cpu/cgroup.procs ]]; then
    groups=/sys/fs/cgroup/cpu
  elif [[ -w /sys/fs/cgroup/cgroup.procs && " $(cat /sys/fs/cgroup/cgroup.controllers) " == *" cpu "* ]]; then
    groups=/sys/fs/cgroup
    echo +cpu > "$groups/cgroup.subtree_control" || skip "this cgroup takes no cpu controller"
  else
    [[ $(id -u) == 0 ]] || skip "it makes network namespaces, which needs root"
    skip "there is no cgroup with a cpu controller to write to"
  fi
  if [[ -z ${TROUPE_BENCH_GROUPS:-} ]]; then
    local old
    for old in "$groups"/troupe-bench-*; do
      [[ ! -d $old || -e /proc/${old##*-} ]] || remove_groups "$old"
    done
    export TROUPE_BENCH_GROUPS=$groups/troupe-bench-$$
    mkdir "$TROUPE_BENCH_GROUPS" || skip "no cgroup can be made in $groups"
    [[ ! -e $TROUPE_BENCH_GROUPS/cgroup.subtree_control ]] || echo +cpu > "$TROUPE_BENCH_GROUPS/cgroup.subtree_control"
  fi
  enter_namespaces "$@"
}

after_namespaces() { remove_groups "$TROUPE_BENCH_GROUPS"; }

# A process that was killed is in its group until it is gone.
remove_groups() {
  local try
  for ((try = 0; try < 50; ++try)); do
    rmdir "$1"/host* "$1" 2> /dev/null || true
    [[ -d $1 ]] || return 0
    sleep 0.1
  done
  echo "cannot remove $1" >&2
}

# Gives a host PERCENT of one processor, which other programs of this machine do not take from it: limit_host HOST PERCENT
limit_host() {
  local group=$TROUPE_BENCH_GROUPS/host$1 quota=$(($2 * kPeriodUs / 100))
  mkdir -p "$group"
  if [[ -e $group/cpu.max ]]; then
    echo "$quota $kPeriodUs" > "$group/cpu.max"
    echo 10000 > "$TROUPE_BENCH_GROUPS/cpu.weight"
  else
    echo "$kPeriodUs" > "$group/cpu.cfs_period_us"
    echo "$quota" > "$group/cpu.cfs_quota_us"
    echo 262144 > "$TROUPE_BENCH_GROUPS/cpu.shares"
  fi
}

# Becomes a command on a host; for a subshell: ( become HOST COMMAND… ) > LOG &
become() {
  local host=$1
  shift
  echo 0 > "$TROUPE_BENCH_GROUPS/host$host/cgroup.procs"
  exec ip netns exec "host$host" "$@"
}

# Sends a signal to all processes of a host: signal_host HOST SIGNAL
signal_host() {
  local pid
  while read -r pid; do
    kill -"$2" "$pid" 2> /dev/null || true
  done < "$TROUPE_BENCH_GROUPS/host$1/cgroup.procs"
}

# Ends what runs on the hosts, and waits for it.
clear_hosts() {
  local host try
  for ((try = 0; try < 50; ++try)); do
    for ((host = 1; host <= hosts; ++host)); do signal_host "$host" KILL; done
    [[ -n $(cat "$TROUPE_BENCH_GROUPS"/host*/cgroup.procs) ]] || return 0
    sleep 0.1
  done
  echo "processes of the hosts do not end" >&2
  return 1
}
