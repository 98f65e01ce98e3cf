#include "strategies/bsp_backup.hpp"

#include <algorithm>
#include <utility>

namespace troupe::strategies {

namespace {

// An exchange id holds a number of steps and, in the low 16 bits, 0 for gradients or shard + 1 for a pull.
constexpr ExchangeId gradient_of(Step steps) { return steps << 16; }
constexpr ExchangeId pull_of(Step steps, ShardId shard) { return steps << 16 | (shard + 1); }
constexpr Step steps_of(ExchangeId id) { return id >> 16; }
constexpr bool is_gradient(ExchangeId id) { return (id & 0xffff) == 0; }
constexpr ShardId shard_of(ExchangeId id) { return static_cast<ShardId>(id & 0xffff) - 1; }

}  // namespace

// ---- worker rule

void BackupWorker::on(const StepDone& event, const WorkerContext& context, WorkerActions& then) {
  steps_ = context.step;
  then.apply(clip(kGrads, event.optimizer));
  then.push_pull(gradient_of(steps_), kGrads);
  pending_ = 1;
}

void BackupWorker::on(const Replied& event, const WorkerContext&, WorkerActions&) {
  has_of_[event.shard] = event.min_clock;  // 0 if it was dropped
}

void BackupWorker::on(const ExchangeDone& event, const WorkerContext&, WorkerActions& then) {
  // Shards do not drop pulls. If one did, it would have nothing newer to give.
  if (event.dropped && !is_gradient(event.exchange)) has_of_[shard_of(event.exchange)] = steps_of(event.exchange);
  if (--pending_ == 0) catch_up(then);
}

/// Computes when the parameters of all shards are of one step. Otherwise the worker pulls from the shards that are behind. They may
/// answer with a newer step yet, as the run advances meanwhile. But this ends: a pulling worker is at most one message behind.
void BackupWorker::catch_up(WorkerActions& then) {
  Step newest = steps_;
  for (const auto& [shard, steps] : has_of_) newest = std::max(newest, steps);
  for (const auto& [shard, steps] : has_of_) {
    if (steps == newest) continue;
    then.pull(pull_of(newest, shard), kGrads, {shard, 1});
    ++pending_;
  }
  if (pending_ > 0) return;
  then.apply(copy(kParams, kGrads));
  then.compute_at(newest);
}

// ---- server rule

void BackupServer::on(const Request& request, const ServerContext& context, ServerActions& then) {
  if (is_gradient(request.exchange) && request.clock <= closed_) {
    then.drop(request.id, "step " + std::to_string(request.clock - 1) + " was complete without it");
    return;
  }
  // A worker computes a step only with the result of the step before.
  if (is_gradient(request.exchange) && request.clock > closed_ + 1) {
    then.drop(request.id, "step " + std::to_string(closed_) + " is not complete");
    return;
  }
  then.hold(request.id);
  if (is_gradient(request.exchange)) {
    gradients_.emplace(request.worker, request);
  } else {
    pulls_.emplace(request.worker, request);
    answer_pulls(then);
  }
  close_steps(context.membership, context.version, then);
}

void BackupServer::on(const MembershipChanged& event, const ServerContext& context, ServerActions& then) {
  close_steps(event.membership, context.version, then);
}

/// True with enough gradients. Also true when every live worker waits here for this step's end or its parameters, so that no
/// further gradient can come: other shards closed the step with a gradient that was lost on its way to this shard.
bool BackupServer::complete(const Membership& membership) const {
  const auto& live = membership.workers;
  const auto needed = live.size() > backup_ ? live.size() - backup_ : 1;
  if (gradients_.size() >= needed) return true;
  return gradients_.size() + pulls_.size() > 0 && std::all_of(live.begin(), live.end(), [this](WorkerId worker) {
           return gradients_.contains(worker) || pulls_.contains(worker);
         });
}

void BackupServer::close_steps(const Membership& membership, Version version, ServerActions& then) {
  while (complete(membership)) close_step(version, then);
}

void BackupServer::close_step(Version version, ServerActions& then) {
  ++closed_;
  // Steps without waiting gradients are not closed one by one: a pull names its number of steps.
  if (gradients_.empty()) {
    const auto steps = [](const auto& waiting) { return steps_of(waiting.second.exchange); };
    closed_ = std::max(closed_, steps(*std::ranges::min_element(pulls_, {}, steps)));
  }
  if (!gradients_.empty()) {
    const Slot sum = server_state(static_cast<std::uint8_t>(core::state_slots(optimizer_.kind)));
    std::vector<RequestId> requests;  // in rank order
    for (const auto& [worker, request] : gradients_) requests.push_back(request.id);
    auto step = optimizer_;
    step.lr = gradients_.begin()->second.lr;
    step.t = version + 1;
    then.apply(fill(sum, 0));
    then.apply(axpy(sum, 1, kPayload), requests);
    then.apply(scale(sum, 1 / static_cast<float>(requests.size())));
    then.apply(optimize(kCenter, sum, server_state(0), step));
    then.apply(copy(kPayload, kCenter), requests);
    for (const auto request : requests) then.reply(request, closed_);
    gradients_.clear();
  }
  answer_pulls(then);
}

void BackupServer::answer_pulls(ServerActions& then) {
  std::erase_if(pulls_, [&](const auto& waiting) {
    const auto& pull = waiting.second;
    if (steps_of(pull.exchange) > closed_) return false;
    then.apply(copy(kPayload, kCenter), pull.id);
    then.reply(pull.id, closed_);
    return true;
  });
}

std::string BackupServer::state() const { return write_state({{"closed", closed_}}); }

core::Result<void> BackupServer::restore(const std::string& text) { return read_state(text, {{"closed", &closed_}}); }

// ---- the strategy

namespace {

class BspWithBackup final : public Strategy {
 public:
  BspWithBackup(std::size_t backup, const core::OptimizerStep& optimizer) : backup_(backup), optimizer_(optimizer) {
    optimizer_.clip_value = optimizer_.clip_norm = 0;  // the workers clip
  }
  Needs needs() const override {
    const auto& optimizer = core::optimizer_info(optimizer_.kind);
    return {.servers = true,
            .in_step = true,
            .backup = backup_,
            .model = ModelHome::center,
            .worker_state = WorkerState::discarded,
            .server_states = static_cast<std::uint8_t>(optimizer.state_slots + 1),  // and the sum
            .server_state_of = optimizer.state_slots > 0 ? std::string(optimizer.name) : ""};
  }
  std::unique_ptr<WorkerRule> worker() const override { return std::make_unique<BackupWorker>(); }
  std::unique_ptr<ServerRule> server() const override { return std::make_unique<BackupServer>(backup_, optimizer_); }

 private:
  std::size_t backup_;
  core::OptimizerStep optimizer_;
};

}  // namespace

std::unique_ptr<Strategy> make_bsp_with_backup(std::size_t backup, const RunShape& shape) {
  return std::make_unique<BspWithBackup>(backup, shape.optimizer);
}

}  // namespace troupe::strategies
