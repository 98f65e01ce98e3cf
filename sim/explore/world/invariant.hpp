/// An invariant of a virtual run, checked during the run: an observer that throws Violation. Each keeps the past that it needs. Called in
/// one thread, in the order of events; it must not change anything.
#pragma once

#include <vector>

#include "sim/explore/world/collectives.hpp"
#include "sim/explore/world/memory.hpp"
#include "sim/explore/world/words.hpp"

namespace troupe::explore {

class VirtualRun;

/// A kernel that a server ran, with copies of its inputs.
struct ServerKernel {
  ShardId shard = 0;
  KernelCall call;
  RequestId request = 0;  // 0: none
  std::vector<float> center_before;
  std::vector<float> payload_before;
  core::ConstSpan center;
  core::ConstSpan payload;
};

/// A worker begins a step; `params` are the parameters that it computes with.
struct StepBegins {
  WorkerId worker = 0;
  Step step = 0;
  std::uint64_t lease = 0;
  core::ConstSpan params;
};

class Invariant {
 public:
  virtual ~Invariant() = default;
  /// A newcomer begins at step `first` with the current centre; `read`: its versions, by shard.
  virtual void entered(const VirtualRun&, WorkerId, Step /*first*/, const std::vector<Version>& /*read*/) {}
  virtual void step_begins(const VirtualRun&, const StepBegins&) {}
  virtual void told(const VirtualRun&, WorkerId, const WorkerEvent&) {}  ///< before the rule handles it
  virtual void told(const VirtualRun&, ShardId, const ServerEvent&) {}   ///< before the rule handles it
  virtual void ran(const VirtualRun&, const ServerKernel&) {}
  virtual void dropped(const VirtualRun&, ShardId, const Request&) {}
  virtual void refused(const VirtualRun&, ShardId, const Request&) {}  ///< after told(), before the rule handles it
  /// Called after a reduction. `before`: the members' input vectors, in rank order.
  virtual void performed(const VirtualRun&, Step, const Collectives::Task&,
                         const std::vector<std::vector<float>>& /*before*/, const std::vector<core::Span>& /*after*/) {}
  virtual void happened(const VirtualRun&) {}  ///< after every event of the queue
  virtual void at_rest(const VirtualRun&) {}   ///< at the end
};

}  // namespace troupe::explore
