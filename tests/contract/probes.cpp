#include "tests/contract/probes.hpp"

#include "strategies/registry/registry.hpp"
#include "tests/contract/evidence.hpp"
#include "tests/contract/exchange_probe.hpp"
#include "tests/contract/peer_message_probe.hpp"
#include "tests/contract/shard_probe.hpp"
#include "tests/contract/sums_probe.hpp"

namespace troupe::contract {

using namespace strategies;

namespace {

struct ProbeConfig {
  bool in_step = false;
};

const core::Table<ProbeConfig>& probe_table() {
  static const core::Table<ProbeConfig> table{
      "strategy", {{"in_step", &ProbeConfig::in_step, core::anything(), "equal shares of the leases"}}};
  return table;
}

class Exchanges final : public Strategy {
 public:
  Exchanges(const ProbeConfig& config, const RunShape& shape) : config_(config), shards_(shape.servers) {}
  Needs needs() const override {
    return {.servers = true,
            .in_step = config_.in_step,
            .model = ModelHome::center,
            .worker_slots = with_evidence({staged(0), staged(1), staged(2), kAnchor}),
            .server_states = kServerStates};
  }
  std::unique_ptr<WorkerRule> worker() const override {
    return std::make_unique<ExchangeProbe>(shards_, config_.in_step);
  }
  std::unique_ptr<ServerRule> server() const override { return std::make_unique<ShardProbe>(); }

 private:
  ProbeConfig config_;
  ShardId shards_;
};

class Sums final : public Strategy {
 public:
  Sums(const ProbeConfig&, const RunShape&) {}
  Needs needs() const override {
    return {.servers = true,
            .group = true,
            .subgroups = true,
            .in_step = true,
            .model = ModelHome::center,
            .worker_slots = with_evidence({staged(0), staged(1), staged(2), staged(3), staged(4), staged(5)}),
            .server_states = kServerStates};
  }
  std::unique_ptr<WorkerRule> worker() const override { return std::make_unique<SumsProbe>(); }
  std::unique_ptr<ServerRule> server() const override { return std::make_unique<ShardProbe>(); }
};

class PeerMessages final : public Strategy {
 public:
  PeerMessages(const ProbeConfig&, const RunShape&) {}
  Needs needs() const override {
    return {.servers = true,
            .peers = true,
            .model = ModelHome::center,
            .worker_slots = with_evidence({staged(0), staged(1)}),
            .server_states = kServerStates};
  }
  std::unique_ptr<WorkerRule> worker() const override { return std::make_unique<PeerMessageProbe>(); }
  std::unique_ptr<ServerRule> server() const override { return std::make_unique<ShardProbe>(); }
};

template <class Probe>
StrategyInfo probe(const std::string& name, const std::string& summary) {
  return {.name = name,
          .summary = summary,
          .add_options = [name](core::Schema& schema) { schema.add(probe_table(), name); },
          .make = [](const core::Config& config, const RunShape& shape) -> core::Result<std::unique_ptr<Strategy>> {
            return std::make_unique<Probe>(config.get(probe_table()), shape);
          },
          // The scenario sets the options, and the probe itself checks what holds.
          .option_space = [](const RunShape&) { return OptionSpace{}; },
          .properties = [](const core::Config&, const RunShape&) { return Properties{}; }};
}

}  // namespace

void register_probes() {
  strategies::add(probe<Exchanges>("probe_exchanges", "looks at what exchanges promise"));
  strategies::add(probe<Sums>("probe_sums", "looks at what collectives promise"));
  strategies::add(probe<PeerMessages>("probe_peer_messages", "looks at what peer messages between workers promise"));
}

}  // namespace troupe::contract
