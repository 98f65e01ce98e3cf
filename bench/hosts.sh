# shellcheck shell=bash
# Sourced by benchmarks that need hosts: network namespaces, two joined by one link of limited rate, more of them by a switch. Needs root,
# iproute2 and util-linux; where one of them is missing the script says so and ends with exit code 77.
#
# The whole script runs in a process and a mount namespace of its own, with a /run of its own. So nothing is left, however it ends
# (SIGKILL included): the kernel ends its processes, and with the last of them go the namespaces, the links and the files in $scratch.
# Processes of the hosts share the file system and the machine's memory. So a benchmark that measures a link must check its byte counters.

skip() {
  echo "${0##*/}: left out: $*" >&2
  exit 77
}

# Called outside of the namespaces, after all processes inside have ended; a script may redefine it.
after_namespaces() { :; }

# Begins the script again, within; to be called first, with the script's arguments. Sets scratch.
enter_namespaces() {
  if [[ ${TROUPE_BENCH_INSIDE:-} != "$PPID" ]]; then  # the first process of a namespace has parent 0
    [[ $(id -u) == 0 ]] || skip "it makes network namespaces, which needs root"
    local tool
    for tool in ip tc unshare setpriv; do
      command -v "$tool" > /dev/null || skip "there is no '$tool' (Debian: iproute2, util-linux)"
    done
    unshare --mount --pid --fork --mount-proc ip netns list > /dev/null 2>&1 || skip "this machine makes no namespaces"
    # Signals go to this shell, which passes on the only one that nothing outlives; should it die itself, the kernel does.
    setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc \
      env TROUPE_BENCH_INSIDE=0 "$BASH" "$0" "$@" &
    local inside=$!
    trap '{ kill -KILL $inside || true; wait $inside || true; } 2> /dev/null; after_namespaces' EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    local rc=0
    wait "$inside" || rc=$?
    trap - EXIT
    after_namespaces
    exit "$rc"
  fi
  mount -t tmpfs tmpfs /run
  scratch=/run/bench
  mkdir "$scratch"
}

# Makes certificates for the hosts: $certs/ca.pem, host1.pem, host1.key and so on. make_certificates TROUPE [HOSTS]
make_certificates() {
  local host
  certs=$scratch/certs
  "$1" certs init --directory "$certs" > /dev/null
  for ((host = 1; host <= ${2:-2}; ++host)); do
    "$1" certs node "host$host" --host "10.0.0.$host" --directory "$certs" > /dev/null
  done
}

# Joins host1 (10.0.0.1), host2 (10.0.0.2) and so on, no others: join_hosts [HOSTS]
join_hosts() {
  local host
  hosts=${1:-2}
  for ((host = 1; host <= hosts; ++host)); do ip netns add "host$host"; done
  if ((hosts == 2)); then
    ip -n host1 link add eth0 type veth peer name eth0 netns host2
  else
    ip netns add switch
    ip -n switch link add bridge type bridge
    ip -n switch link set bridge up
    for ((host = 1; host <= hosts; ++host)); do
      ip -n "host$host" link add eth0 type veth peer name "port$host" netns switch
      ip -n switch link set "port$host" master bridge up
    done
  fi
  for ((host = 1; host <= hosts; ++host)); do
    ip -n "host$host" addr add "10.0.0.$host/24" dev eth0
    ip -n "host$host" link set lo up
    ip -n "host$host" link set eth0 up
    # Linux's default. On some machines another one is set, and BBR's timers cost slow hosts several per cent of their processors here.
    ip netns exec "host$host" sh -c 'echo cubic > /proc/sys/net/ipv4/tcp_congestion_control' 2> /dev/null || true
  done
}

# Limits every host's link, each way: rate and burst as tc writes them; "none" takes the limit away.
limit_link() {
  local host
  for ((host = 1; host <= hosts; ++host)); do
    limit_device "host$host" eth0 "$@"
    ((hosts == 2)) || limit_device switch "port$host" "$@"
  done
}

limit_device() {  # NAMESPACE DEVICE RATE BURST: what the device sends
  tc -n "$1" qdisc del dev "$2" root 2> /dev/null || true
  [[ $3 == none ]] || tc -n "$1" qdisc add dev "$2" root tbf rate "$3" burst "$4" latency 50ms
}

# Runs a command on a host: on_host 1 COMMAND…
on_host() {
  local host=$1
  shift
  ip netns exec "host$host" "$@"
}

# Waits until a node listens there: wait_for_node HOST PORT LOG PROCESS. Fails with the log's last lines if the process ends, or after 30 s.
wait_for_node() {
  local try
  for ((try = 0; try < 300; ++try)); do
    [[ -z $(ip netns exec "host$1" ss -Hltn "sport = :$2") ]] || return 0
    kill -0 "$4" 2> /dev/null || break
    sleep 0.1
  done
  tail -n 3 "$3" >&2
  echo "no node listens on host $1" >&2
  return 1
}

# Starts a node on each host and waits until all of them listen: start_nodes TROUPE PORT [OPTION…]. Sets nodes, their processes in the order of
# the hosts; their output goes to $scratch/node1.log and so on. Fails as wait_for_node does. Needs make_certificates and join_hosts.
start_nodes() {
  local troupe=$1 port=$2 host
  shift 2
  nodes=()
  for ((host = 1; host <= hosts; ++host)); do
    ( exec ip netns exec "host$host" "$troupe" node "$@" --listen "10.0.0.$host:$port" --ca "$certs/ca.pem" --cert "$certs/host$host.pem" \
      --key "$certs/host$host.key" ) > "$scratch/node$host.log" 2>&1 &
    nodes+=($!)
  done
  for ((host = 1; host <= hosts; ++host)); do wait_for_node "$host" "$port" "$scratch/node$host.log" "${nodes[host - 1]}" || return 1; done
}

# Ends the nodes of start_nodes.
stop_nodes() {
  kill "${nodes[@]}" 2> /dev/null || true
  wait "${nodes[@]}" 2> /dev/null || true
}

# Bytes that a host has put on the link, headers and all.
link_bytes() { ip netns exec "host$1" cat /sys/class/net/eth0/statistics/tx_bytes; }
link_packets() { ip netns exec "host$1" cat /sys/class/net/eth0/statistics/tx_packets; }
