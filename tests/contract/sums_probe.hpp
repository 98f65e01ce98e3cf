/// The probe of collectives. In every step it reduces its gradients bucket by bucket, reduces vectors of its own over all workers and in
/// changing groups, and takes part in a broadcast; all at once, in a changing order, one of them across the next step.
#pragma once

#include <map>
#include <set>

#include "core/random.hpp"
#include "strategies/strategy.hpp"

namespace troupe::contract {

class SumsProbe final : public strategies::WorkerRule {
 public:
  void on(const strategies::Started& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;
  void on(const strategies::BucketReady& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;
  void on(const strategies::StepDone& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;
  void on(const strategies::Stopped& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;
  void on(const strategies::Replied& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;
  void on(const strategies::ExchangeDone& event, const strategies::WorkerContext& context,
          strategies::WorkerActions& then) override;

 private:
  void begin_round(const strategies::WorkerContext& context, strategies::WorkerActions& then);
  void end_round(const strategies::WorkerContext& context, strategies::WorkerActions& then);
  void compute(strategies::WorkerActions& then);
  void push(strategies::WorkerActions& then);
  [[nodiscard]] double number_of(strategies::WorkerId worker) const;

  std::uint64_t next_push_ = 0;
  strategies::Step round_ = 0;  // the step whose vectors are summed
  int buckets_ = 0;             // of the current step, so far
  strategies::Group group_;     // of this round
  strategies::WorkerId root_ = 0;
  double over_step_ = 0;  // expected result of the reduction that continues across a step
  bool waits_ = true;     // for waits_for_; else a step is under way
  bool compares_ = false;
  bool stopped_ = false;
  bool finished_ = false;
  std::set<strategies::ExchangeId> waits_for_;
  std::set<strategies::ExchangeId> in_flight_;
  std::map<strategies::ShardId, strategies::Version> versions_;
};

}  // namespace troupe::contract
