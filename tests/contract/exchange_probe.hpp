/// The probe of exchanges. Its worker keeps several pending, of one, some or all shards, of every kind, in slots of its own and in params
/// and grads. It waits for them or continues, and passes over steps where the workers go in step.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/random.hpp"
#include "strategies/strategy.hpp"

namespace troupe::contract {

class ExchangeProbe final : public strategies::WorkerRule {
 public:
  ExchangeProbe(strategies::ShardId shards, bool in_step) : shards_(shards), in_step_(in_step) {}
  void on(const strategies::Started& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;
  void on(const strategies::StepDone& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;
  void on(const strategies::Stopped& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;
  void on(const strategies::Replied& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;
  void on(const strategies::ExchangeDone& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;
  void on(const strategies::MembershipChanged& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;
  void on(const strategies::DeadlinePassed& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;
  [[nodiscard]] std::string state() const override;
  [[nodiscard]] core::Result<void> restore(const std::string& text) override;

 private:
  struct Part {
    strategies::Version at_least = 0;  // what the worker has sent before is in it
    std::optional<strategies::Version> seen{};
    bool dropped = false;
    bool refused = false;
  };
  struct PendingExchange {
    strategies::Transfer kind;
    strategies::Slot slot;
    strategies::ShardId first;
    std::vector<Part> parts;
    [[nodiscard]] strategies::Shards shards() const { return {first, static_cast<strategies::ShardId>(parts.size())}; }
  };
  /// Content of each free slice of a lane (a slot of the worker's own): −`number` u.
  using Resting = std::map<std::uint32_t, strategies::Step>;

  void begin(strategies::Transfer kind, strategies::Slot slot, strategies::Shards shards, bool sure,
             strategies::WorkerId self, strategies::WorkerActions& then);
  void begin_some(core::Random& random, strategies::WorkerId self, strategies::WorkerActions& then);
  void use_lane(std::uint8_t lane, core::Random& random, strategies::WorkerId self, strategies::WorkerActions& then);
  void begin_steps(const PendingExchange& first, const strategies::WorkerContext& context,
                   strategies::WorkerActions& then);
  void take_up(const PendingExchange& pending_exchange, strategies::Shards lane_of, strategies::WorkerActions& then);
  void rest(strategies::Slot lane, strategies::Shards shards, strategies::WorkerActions& then);
  void leave_rest(strategies::Slot lane, strategies::Shards shards, strategies::WorkerActions& then);
  void compute(strategies::Step step, core::Random& random, strategies::WorkerActions& then);
  void finish(strategies::WorkerId self, strategies::WorkerActions& then);
  void set_deadlines(core::Random& random, strategies::WorkerActions& then);
  void look_at_members(const strategies::Membership& members, strategies::WorkerId self);

  strategies::ShardId shards_;
  bool in_step_;
  bool started_ = false;
  bool stopped_ = false;
  bool finished_ = false;
  std::uint64_t next_ = 0;  // next exchange
  std::uint64_t next_rest_ = 2;
  std::uint64_t next_deadline_ = 1;
  strategies::Step asked_ = 0;
  std::optional<std::uint64_t> epoch_;  // of the membership
  std::map<strategies::ExchangeId, PendingExchange> pending_exchanges_;
  std::set<strategies::ExchangeId> waits_for_;
  std::map<strategies::ShardId, strategies::Version> at_least_;  // by shard, for the next request
  Resting resting_;                                              // by lane × 256 + shard
  std::map<strategies::DeadlineId, std::optional<strategies::Duration>> deadlines_;
};

}  // namespace troupe::contract
