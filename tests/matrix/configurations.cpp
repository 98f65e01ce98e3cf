#include "tests/matrix/configurations.hpp"

#include <utility>

namespace troupe::matrix {

namespace {

using Words = std::vector<std::string>;

const std::vector<World> kSites{World::inproc, World::shm, World::tcp, World::ucx, World::mpi};
const std::vector<World> kMapped{World::threads, World::inproc, World::shm, World::virtual_time};
const std::vector<World> kPacked{World::tcp, World::ucx, World::mpi};
const std::vector<World> kPadded{World::inproc, World::shm};
/// Pieces of a vector depend on whether it travels with the padding of arenas, and the bits of these sums depend on the pieces.
constexpr const char* kRing = "in one process sums are formed in rank order, and a ring begins elsewhere in each piece";
constexpr const char* kHalf = "in one process no wire rounds, and of its own piece nobody rounds what it adds";
constexpr const char* kRounds = "in one process, and in the forecast, no wire rounds";
constexpr const char* kOneHost = "one process and the forecast know no hosts";
constexpr const char* kMaps = "this algorithm sums in mapped memory";

constexpr const char* kDevices = "cluster.device=cuda_on_host";
constexpr const char* kNormalised =
    "model.layers=[{type=\"conv2d\", outputs=6, kernel=5}, {type=\"batch_norm\"}, {type=\"relu\"}, {type=\"pool\", "
    "kernel=4}, {type=\"flatten\"}, {type=\"dropout\", rate=0.3}, {type=\"linear\", outputs=10}]";
/// More than one bucket of gradients.
constexpr const char* kLarge =
    "model.layers=[{type=\"flatten\"}, {type=\"linear\", outputs=400}, {type=\"relu\"}, {type=\"linear\", "
    "outputs=300}, {type=\"relu\"}, {type=\"linear\", outputs=10}]";

Configuration on_workers(std::string name, std::string strategy, Words settings = {}) {
  return {.name = std::move(name), .strategy = std::move(strategy), .settings = std::move(settings), .servers = false};
}
Configuration with_servers(std::string name, std::string strategy, Words settings = {}) {
  return {.name = std::move(name), .strategy = std::move(strategy), .settings = std::move(settings)};
}
Configuration standard(Configuration configuration) {
  configuration.standard = true;
  return configuration;
}
Configuration in_step(Configuration configuration) {
  configuration.several = true;
  return configuration;
}
Configuration only(std::vector<World> worlds, const char* why, Configuration configuration) {
  configuration.worlds = std::move(worlds);
  configuration.why = why;
  return configuration;
}
Configuration two_buckets(Configuration configuration) {
  configuration.buckets = 2;
  return configuration;
}

}  // namespace

const std::vector<Configuration>& configurations() {
  // Periods of 3 and 4 do not divide the steps of any run. mixed has one group only, so no other group is asynchronous to it.
  static const std::vector<Configuration> all{
      standard(in_step(on_workers("bsp", "bsp"))),
      standard(in_step(on_workers("bsp_updates", "bsp", {"strategy.combine=updates"}))),
      standard(
          in_step(on_workers("bsp_weights", "bsp", {"strategy.combine=weights", "strategy.average_momentum=true"}))),
      in_step(on_workers("bsp_adam", "bsp", {"train.optimizer=adam", "train.lr=0.002"})),
      in_step(on_workers("bsp_normalised", "bsp", {kNormalised})),
      two_buckets(in_step(on_workers("bsp_buckets", "bsp", {kLarge}))),
      two_buckets(in_step(
          on_workers("bsp_neurons", "bsp", {kLarge, "model.parallel=neurons", "cluster.threads_per_worker=3"}))),
      only(kMapped, kMaps, in_step(on_workers("bsp_shm", "bsp", {"exchange.algorithm=shm"}))),
      only(kSites, kOneHost, in_step(on_workers("bsp_hierarchical", "bsp", {"exchange.algorithm=hierarchical"}))),
      only(kPacked, kRing, in_step(on_workers("bsp_ring", "bsp", {"exchange.algorithm=ring"}))),
      only(kPadded, kRing, in_step(on_workers("bsp_ring_padded", "bsp", {"exchange.algorithm=ring"}))),
      only(kPacked, kHalf, in_step(on_workers("bsp_asa16", "bsp", {"exchange.algorithm=asa16"}))),
      only(kPadded, kHalf, in_step(on_workers("bsp_asa16_padded", "bsp", {"exchange.algorithm=asa16"}))),
      standard(only(kPacked, kHalf, in_step(on_workers("bsp_bf16", "bsp", {"exchange.wire=bf16"})))),
      only(kPadded, kHalf, in_step(on_workers("bsp_bf16_padded", "bsp", {"exchange.wire=bf16"}))),
      standard(with_servers("easgd", "easgd", {"strategy.tau=3"})),
      with_servers("easgd_normalised", "easgd", {"strategy.tau=3", kNormalised}),
      standard(only(kSites, kRounds, with_servers("easgd_bf16", "easgd", {"strategy.tau=3", "exchange.wire=bf16"}))),
      standard(with_servers("eamsgd", "eamsgd", {"strategy.tau=3", "train.optimizer=nesterov"})),
      standard(in_step(with_servers("sync_easgd", "sync_easgd", {"strategy.tau=3"}))),
      standard(with_servers("downpour", "downpour")),
      standard(with_servers(
          "downpour_adam", "downpour",
          {"strategy.n_push=2", "strategy.n_fetch=3", "strategy.server_optimizer=adam", "train.lr=0.002"})),
      only(kSites, kRounds, with_servers("downpour_fp16", "downpour", {"exchange.wire=fp16"})),
      standard(with_servers("ssp", "ssp", {"strategy.s=2", "strategy.steps_per_clock=3"})),
      standard(with_servers("ssp_overlap", "ssp", {"strategy.s=1", "strategy.overlap=wait"})),
      standard(in_step(with_servers("local_sgd", "local_sgd", {"strategy.tau=3"}))),
      in_step(with_servers("local_sgd_nesterov", "local_sgd",
                           {"strategy.tau=3", "strategy.outer=nesterov", "train.optimizer=adam", "train.lr=0.002"})),
      standard(in_step(with_servers("diloco", "diloco", {"strategy.tau=4"}))),
      in_step(with_servers("diloco_delay", "diloco", {"strategy.tau=4", "strategy.delay=2"})),
      standard(in_step(with_servers("mixed", "mixed", {"strategy.group_size=8"}))),
      in_step(with_servers("mixed_ema", "mixed", {"strategy.group_size=8", "strategy.ema=0.9"})),
      in_step(
          with_servers("mixed_easgd", "mixed", {"strategy.group_size=8", "strategy.inner=easgd", "strategy.tau=3"})),
      in_step(with_servers("mixed_ssp", "mixed", {"strategy.group_size=8", "strategy.inner=ssp"})),
      standard(on_workers("gossip", "gossip", {"strategy.p=0.5"})),  // one worker has no peer to write to
      standard(in_step(on_workers("pairs", "pairs", {"strategy.tau=3"}))),
      in_step(on_workers("pairs_normalised", "pairs", {"strategy.tau=3", kNormalised})),
      // Vectors stay in the memory of devices, whose arenas have no padding to leave out.
      standard(in_step(on_workers("bsp_devices", "bsp", {kDevices, kNormalised}))),
      only(kSites, kRing, in_step(on_workers("bsp_ring_devices", "bsp", {kDevices, "exchange.algorithm=ring"}))),
      only(kSites, kHalf, in_step(on_workers("bsp_bf16_devices", "bsp", {kDevices, "exchange.wire=bf16"}))),
      standard(with_servers("easgd_devices", "easgd", {kDevices, "strategy.tau=3"})),
      in_step(with_servers("diloco_devices", "diloco", {kDevices, "strategy.tau=4"})),
      in_step(on_workers("pairs_devices", "pairs", {kDevices, "strategy.tau=3"})),
  };
  return all;
}

std::string name_of(const Cell& cell) {
  const auto& members = cell.members;
  const auto number = std::to_string(members.workers) + "x" + std::to_string(members.servers);
  return cell.configuration->name + "_" + number + (members.colocated ? "_colocated" : "_dedicated");
}

std::vector<Cell> cells(bool all) {
  std::vector<Cell> list;
  for (const auto& configuration : configurations()) {
    if (!all) {
      if (!configuration.standard) continue;
      list.push_back({&configuration, {1, 1, false}});
      if (configuration.several) {
        list.push_back({&configuration, {2, 1, false}});
        list.push_back({&configuration, {3, 2, true}});
        list.push_back({&configuration, {5, 3, false}});
      }
      continue;
    }
    for (const std::uint32_t workers : {1U, 2U, 3U, 5U}) {
      if (workers > 1 && !configuration.several) break;
      for (const std::uint32_t servers : {1U, 2U, 3U}) {
        if (servers > 1 && !configuration.servers) break;
        list.push_back({&configuration, {workers, servers, false}});
        if (configuration.servers) list.push_back({&configuration, {workers, servers, true}});
      }
    }
  }
  return list;
}

}  // namespace troupe::matrix
