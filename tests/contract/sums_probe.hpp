/// The probe of collectives: in every step it reduces its gradients bucket by bucket, vectors of its own over everyone and in groups
/// that change, and takes one of a root; all at once, in an order that changes, and one of them over the next step.
#pragma once

#include <map>
#include <set>

#include "core/random.hpp"
#include "strategies/strategy.hpp"

namespace troupe::contract {

class SumsProbe final : public strategies::WorkerHalf {
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
  int buckets_ = 0;             // told of the step under way
  strategies::Group group_;     // of this round
  strategies::WorkerId root_ = 0;
  double over_step_ = 0;  // what the reduction that goes on over a step should come to
  bool waits_ = true;     // for what is in waits_for_; else a step is under way
  bool compares_ = false;
  bool stopped_ = false;
  bool finished_ = false;
  std::set<strategies::ExchangeId> waits_for_;
  std::set<strategies::ExchangeId> in_flight_;
  std::map<strategies::ShardId, strategies::Version> versions_;
};

}  // namespace troupe::contract
