#include "strategies/gossip.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe::strategies {

namespace {

/// Weights are whole multiples of 2⁻⁵²: a double adds and subtracts them without rounding, so Σ a never drifts.
constexpr int kBits = 52;
double whole(double weight) { return std::ldexp(std::floor(std::ldexp(weight, kBits)), -kBits); }

}  // namespace

GossipWorker::GossipWorker(std::uint32_t workers, std::shared_ptr<const PeerGraph> graph, double probability) noexcept
    : graph_(std::move(graph)), probability_(probability), weight_(whole(1.0 / workers)) {}

void GossipWorker::on(const StepDone& event, const WorkerContext& context, WorkerActions& then) {
  then.apply(optimize(kParams, kGrads, kVelocity, event.optimizer));
  drain_inbox(then);
  perhaps_send(context, then);
  then.compute();
}

void GossipWorker::drain_inbox(WorkerActions& then) {
  for (const auto& message : std::exchange(inbox_, {})) {
    const double sum = weight_ + message.weight;
    // The larger share is rounded to float; the smaller is exactly the rest. Together they are 1, so x does not shrink.
    float mine = static_cast<float>(weight_ / sum);
    if (weight_ < message.weight) mine = 1 - static_cast<float>(message.weight / sum);
    then.apply(scale_add(kParams, mine, 1 - mine, message.slot));
    weight_ = sum;
  }
}

void GossipWorker::perhaps_send(const WorkerContext& context, WorkerActions& then) {
  auto random = context.random();
  std::vector<WorkerId> peers = context.membership.workers;
  std::erase_if(peers, [&](WorkerId peer) { return !graph_->may_write(context.self, peer); });
  const double half = whole(weight_ / 2);
  if (peers.empty() || half == 0 || random.uniform() >= probability_) return;
  weight_ -= half;
  then.send(peers[random.below(peers.size())], kParams, half);
}

void GossipWorker::on(const PeerMessageArrived& event, const WorkerContext&, WorkerActions& then) {
  inbox_.push_back(event);
  if (stopped_) drain_inbox(then);  // no further step will come
}

void GossipWorker::on(const SendSkipped& event, const WorkerContext&, WorkerActions&) { weight_ += event.weight; }

void GossipWorker::on(const Stopped&, const WorkerContext&, WorkerActions& then) {
  stopped_ = true;
  drain_inbox(then);
}

std::string GossipWorker::state() const { return write_state({{"weight", weight_}, {"stopped", stopped_}}); }

core::Result<void> GossipWorker::restore(const std::string& text) {
  return read_state(text, {{"weight", &weight_}, {"stopped", &stopped_}});
}

// ---- options

namespace {

const core::Table<GossipConfig>& gossip_table() {
  static const core::Table<GossipConfig> table{
      "strategy",
      {{"p", &GossipConfig::p, core::between(0, 1), "probability that a worker sends its parameters after a step"}}};
  return table;
}

class Gossip final : public Strategy {
 public:
  Gossip(std::uint32_t workers, double probability)
      : workers_(workers), graph_(std::make_shared<const PeerGraph>(workers)), probability_(probability) {}
  Needs needs() const override {
    return {.peers = true,
            .model = ModelHome::weighted,
            .worker_state = WorkerState::discarded,
            .rounds = false,
            .local_steps = true};
  }
  std::unique_ptr<WorkerRule> worker() const override {
    return std::make_unique<GossipWorker>(workers_, graph_, probability_);
  }
  std::unique_ptr<ServerRule> server() const override { return nullptr; }

 private:
  std::uint32_t workers_;
  std::shared_ptr<const PeerGraph> graph_;
  double probability_;
};

}  // namespace

StrategyInfo gossip() {
  return {.name = "gossip",
          .summary = "workers train alone and send their parameters to random peers, which mix them in",
          .add_options = [](core::Schema& schema) { schema.add(gossip_table(), "gossip"); },
          .make = [](const core::Config& config, const RunShape& shape) -> core::Result<std::unique_ptr<Strategy>> {
            return std::make_unique<Gossip>(shape.workers, config.get(gossip_table()).p);
          },
          .option_space = [](const RunShape&) -> OptionSpace {
            return {.choices = {values("p", {"0.25", "0.5", "1.0"})}};
          },
          .properties = [](const core::Config&, const RunShape&) -> Properties { return {GossipWeights{}}; }};
}

}  // namespace troupe::strategies
