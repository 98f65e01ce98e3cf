#include "tests/matrix/worlds.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <deque>
#include <stdexcept>
#include <thread>
#include <utility>

namespace troupe::matrix {

namespace {

using nlohmann::json;
using nodes::Process;
using nodes::program;
using Words = std::vector<std::string>;

/// Channels that are padded in memory; an epoch whose last batch is shorter, and wraps around where workers take equal shares; an optimizer
/// with a state.
constexpr const char* kBase = R"([run]
epochs = 2
[model]
name = "own"
layers = [{type="conv2d", outputs=6, kernel=5}, {type="pool", kernel=4}, {type="relu"}, {type="flatten"}, {type="linear", outputs=10}]
[data]
name = "glyphs"
batch = 10
train_samples = 205
test_samples = 40
[train]
optimizer = "momentum"
lr = 0.02
momentum = 0.9
weight_decay = 0.001
[strategy]
name = "bsp"
)";

constexpr const char* kCluster =
    "[hosts.node]\ncount = 8\nstep_ms = 4\nstep_sigma = 0.3\n[network]\nlatency_us = 50\ngbit_per_s = 1\n";

void append(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

Words set(const Words& settings) {
  Words words;
  for (const auto& setting : settings) append(words, {"--set", setting});
  return words;
}

std::string endpoint_of(World world) {
  switch (world) {
    case World::inproc: return "inproc";
    case World::shm: return "shm";
    case World::tcp: return "tcp";
    case World::ucx: return "ucx";
    case World::mpi: return "mpi";
    case World::threads:
    case World::virtual_time: break;
  }
  return {};
}

/// The process' standard output as JSON; null if it failed, with the reason in `why`.
json said(Process& process, std::string& why) {
  const int code = process.wait();
  auto text = json::parse(process.out(), nullptr, false);
  if (code == 0 && text.is_object()) return text;
  why = "failed: exit code " + std::to_string(code) + ": " + process.err();
  return nullptr;
}

std::string numbers_in(const json& summary) {
  const auto& exchange = summary.at("exchange");
  return json{{"center_hash", summary.at("center_hash")},
              {"test", summary.at("test")},
              {"steps", summary.at("steps")},
              {"samples", summary.at("samples")},
              {"exchanges", exchange.at("count")},
              {"staleness_mean", exchange.at("staleness_mean")},
              {"staleness_max", exchange.at("staleness_max")}}
      .dump();
}

}  // namespace

const char* name_of(World world) {
  switch (world) {
    case World::threads: return "threads";
    case World::inproc: return "inproc";
    case World::shm: return "shm";
    case World::tcp: return "tcp";
    case World::ucx: return "ucx";
    case World::mpi: return "mpi";
    case World::virtual_time: return "virtual time";
  }
  return "?";
}

Worlds::Worlds() : config_(folder_.write("config.toml", kBase)), cluster_(folder_.write("cluster.toml", kCluster)) {
  const auto certs = folder_.file("certs");
  for (const Words& words :
       {Words{"certs", "init", "--directory", certs}, {"certs", "node", "n", "--directory", certs}}) {
    Process made(program(words));
    if (made.wait() != 0) throw std::runtime_error(made.err());
  }
  tls_ = {.ca = certs + "/ca.pem", .certificate = certs + "/n.pem", .key = certs + "/n.key"};
  for (int k = 0; k < 2; ++k) {
    auto node =
        std::make_unique<nodes::NodeProcess>(nodes::NodeProcess::Options{.tls = tls_, .directory = {}, .within = {}});
    if (!node->up()) throw std::runtime_error(node->log());
    nodes_.push_back(std::move(node));
  }
  Process doctor(program({"doctor", "--json"}));
  std::string why;
  const auto facts = said(doctor, why);
  if (!why.empty()) throw std::runtime_error(why);
  for (const auto& [world, key] : {std::pair{World::ucx, "ucx"}, {World::mpi, "mpi"}})
    if (!facts.at(key).at("built").get<bool>()) missing_.emplace_back(world, std::string("this build has no ") + key);
  if (!has(World::mpi)) return;
  Process launcher({"sh", "-c", "mpirun --version"});
  if (launcher.wait() != 0) missing_.emplace_back(World::mpi, "no mpirun (Debian: openmpi-bin)");
}

bool Worlds::close() {
  bool well = true;
  for (const auto& node : nodes_) {
    node->process().signal(SIGTERM);
    well = node->process().wait() == 0 && well;
  }
  nodes_.clear();
  return well;
}

bool Worlds::has(World world) const {
  return std::ranges::none_of(missing_, [&](const auto& entry) { return entry.first == world; });
}

Words Worlds::command(World world, const Members& members, const Words& settings) const {
  Words all{"cluster.workers=" + std::to_string(members.workers), "cluster.servers=" + std::to_string(members.servers)};
  const bool sites = !endpoint_of(world).empty();
  if (sites) {
    // asa (direct reduce-scatter + allgather) sums in rank order; the algorithm measured as fastest may not.
    append(all, {"exchange.algorithm=asa", "exchange.endpoint=" + endpoint_of(world),
                 std::string("cluster.server_placement=") + (members.colocated ? "colocated" : "dedicated")});
  }
  append(all, settings);
  const auto set_all = set(all);
  Words words;
  if (world == World::virtual_time) {
    words = program({"simulate", config_, "--gradients", "--json", "--cluster", cluster_, "--cluster-set",
                     "steps.buckets=" + std::to_string(members.buckets)});
  } else {
    words = program({"train", config_, "--quiet", "--json", "--set", "run.dir=" + folder_.file("runs")});
  }
  if (world == World::mpi) {
    Words launch{"mpirun", "--oversubscribe", "--bind-to", "none", "--quiet", "-n", std::to_string(members.workers)};
    if (::geteuid() == 0) launch.emplace_back("--allow-run-as-root");
    append(launch, words);
    words = std::move(launch);
  } else if (sites && world != World::inproc) {
    std::string names = nodes_[0]->name();
    if (members.workers > 1) names += "," + nodes_[1]->name();
    append(words, {"--nodes", names});
    append(words, nodes::tls_arguments(tls_));
  }
  append(words, set_all);
  return words;
}

std::vector<Worlds::Numbers> Worlds::compute(const std::vector<World>& worlds, const Members& members,
                                             const Words& settings) {
  std::vector<Numbers> all(worlds.size());
  struct UnderWay {
    std::unique_ptr<Process> process;
    std::size_t which = 0;
    bool replays = false;
  };
  std::deque<UnderWay> under_way;
  std::deque<std::pair<std::size_t, std::string>> to_replay;  // index of the world, and its run
  const auto finish_first = [&] {
    for (const auto& node : nodes_) (void)node->process().err();  // a node whose log nobody reads stops at a full pipe
    auto [process, which, replays] = std::move(under_way.front());
    under_way.pop_front();
    std::string why;
    const auto summary = said(*process, why);
    auto& numbers = replays ? all[which].replayed : all[which].run;
    numbers = why.empty() ? numbers_in(summary) : why;
    if (!replays && why.empty() && worlds[which] != World::virtual_time)
      to_replay.emplace_back(which, summary.at("run").get<std::string>());
  };
  const std::size_t most = std::max(std::thread::hardware_concurrency(), 1U);
  std::size_t next = 0;
  while (next < worlds.size() || !to_replay.empty() || !under_way.empty()) {
    if (under_way.size() == most || (next == worlds.size() && to_replay.empty())) {
      finish_first();
    } else if (!to_replay.empty()) {
      const auto [which, run] = to_replay.front();
      to_replay.pop_front();
      under_way.push_back({std::make_unique<Process>(program({"replay", run, "--json"})), which, true});
    } else {
      under_way.push_back({std::make_unique<Process>(command(worlds[next], members, settings)), next, false});
      ++next;
    }
  }
  return all;
}

}  // namespace troupe::matrix
