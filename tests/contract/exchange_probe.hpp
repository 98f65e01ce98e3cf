/// The probe of exchanges: its worker keeps some on their way at any time, of one, some or all shards, of every kind, with slots of
/// its own and with params and grads; it waits for them or goes on, and passes over steps where workers go in step.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/random.hpp"
#include "strategies/strategy.hpp"

namespace troupe::contract {

class ExchangeProbe final : public strategies::WorkerHalf {
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
  struct Flight {
    strategies::Transfer kind;
    strategies::Slot slot;
    strategies::ShardId first;
    std::vector<Part> parts;
    [[nodiscard]] strategies::Shards shards() const { return {first, static_cast<strategies::ShardId>(parts.size())}; }
  };
  /// What a lane's slice of a shard is while nobody has it: −`number` u.
  using Resting = std::map<std::uint32_t, strategies::Step>;

  void begin(strategies::Transfer kind, strategies::Slot slot, strategies::Shards shards, bool sure,
             strategies::WorkerId self, strategies::WorkerActions& then);
  void begin_some(core::Random& random, strategies::WorkerId self, strategies::WorkerActions& then);
  void use_lane(std::uint8_t lane, core::Random& random, strategies::WorkerId self, strategies::WorkerActions& then);
  void begin_steps(const Flight& first, const strategies::WorkerContext& context, strategies::WorkerActions& then);
  void take_up(const Flight& flight, strategies::Shards lane_of, strategies::WorkerActions& then);
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
  std::uint64_t next_ = 0;  // exchange
  std::uint64_t next_rest_ = 2;
  std::uint64_t next_deadline_ = 1;
  strategies::Step asked_ = 0;
  std::optional<std::uint64_t> epoch_;  // of the members
  std::map<strategies::ExchangeId, Flight> flights_;
  std::set<strategies::ExchangeId> waits_for_;
  std::map<strategies::ShardId, strategies::Version> at_least_;  // by shard, of what is sent next
  Resting resting_;                                              // by lane × 256 + shard
  std::map<strategies::DeadlineId, std::optional<strategies::Duration>> deadlines_;
};

}  // namespace troupe::contract
