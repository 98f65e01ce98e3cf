#include "apps/commands/serve/node_asker.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "actors/deployment/nodes.hpp"

namespace troupe::apps {
namespace {

constexpr std::chrono::seconds kConnect{10};

/// "best of three" of "worker 3, server 0 of best of three".
std::string run_of_member(const std::string& member) {
  constexpr std::string_view kOf = " of ";
  const auto at = member.find(kOf);
  return at == std::string::npos ? member : member.substr(at + kOf.size());
}

service::NodeReport report_of(const actors::NodeFacts& facts, const std::vector<actors::GpuFacts>& gpus) {
  service::NodeReport report{.cores = facts.cores,
                             .load = facts.load,
                             .memory = facts.memory_bytes,
                             .memory_free = facts.memory_free_bytes,
                             .gpus = {},
                             .runs = {}};
  for (const auto& gpu : gpus)
    report.gpus.push_back({gpu.name, gpu.load >= 0 ? std::optional(gpu.load / 100.0) : std::nullopt, gpu.memory_bytes,
                           gpu.memory_bytes - std::min(gpu.memory_used_bytes, gpu.memory_bytes)});
  for (const auto& member : facts.members)
    if (auto run = run_of_member(member); std::ranges::find(report.runs, run) == report.runs.end())
      report.runs.push_back(std::move(run));
  return report;
}

class NodeAsker {
 public:
  explicit NodeAsker(security::TlsFiles tls) { options_.tls = std::move(tls); }

  core::Result<service::NodeReport> ask(const std::string& address, const std::stop_token& stop) {
    auto node = connected(address, stop);
    if (!node) return tl::unexpected(std::move(node.error()));
    const auto facts = actors::facts_of(*system_, *node, address, stop);
    if (!facts) {
      const std::scoped_lock lock(mutex_);
      nodes_.erase(address);  // the next question connects again
      return tl::unexpected(facts.error());
    }
    std::vector<actors::GpuFacts> gpus;
    if (facts->version == actors::spoken_version(TROUPE_VERSION))  // another version may not know the question
      if (auto report = actors::gpus_of(*system_, *node, address)) gpus = std::move(report->gpus);
    return report_of(*facts, gpus);
  }

 private:
  core::Result<actors::NodeActor> connected(const std::string& address, const std::stop_token& stop) {
    {
      const std::scoped_lock lock(mutex_);
      if (const auto place = nodes_.find(address); place != nodes_.end()) return place->second;
      if (!network_) {
        if (!system_) {
          config_.emplace(options_);
          system_.emplace(*config_);
        }
        auto network = actors::Network::create(*system_, options_);
        if (!network) return tl::unexpected(std::move(network.error()));
        network_ = std::move(*network);
      }
    }
    auto node = actors::parse_host_port(address).and_then(
        [&](const actors::HostPort& at) { return network_->connect<actors::NodeActor>(at, kConnect, stop); });
    if (!node) return node;
    const std::scoped_lock lock(mutex_);
    nodes_.insert_or_assign(address, *node);
    return node;
  }

  actors::NetworkOptions options_;
  std::mutex mutex_;  // guards the others; the system and the network stay once they are made
  std::optional<actors::NetworkConfig> config_;
  std::optional<caf::actor_system> system_;
  std::unique_ptr<actors::Network> network_;
  std::map<std::string, actors::NodeActor> nodes_;
};

}  // namespace

service::AskNode node_asker(security::TlsFiles tls) {
  return [asker = std::make_shared<NodeAsker>(std::move(tls))](
             const std::string& address, const std::stop_token& stop) { return asker->ask(address, stop); };
}

}  // namespace troupe::apps
