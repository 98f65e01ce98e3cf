/// What must hold in a virtual run, checked while it happens: an observer that throws a Violation. Each keeps what it needs of the
/// past itself. Called in one thread, in the order of events; looks and never touches.
#pragma once

#include <vector>

#include "sim/explore/world/collectives.hpp"
#include "sim/explore/world/memory.hpp"
#include "sim/explore/world/words.hpp"

namespace troupe::explore {

class Cluster;

/// A kernel that a server ran, with copies of what it read.
struct ServerKernel {
  ShardId shard = 0;
  KernelCall call;
  RequestId request = 0;  // 0: none
  std::vector<float> center_before;
  std::vector<float> payload_before;
  core::ConstSpan center;
  core::ConstSpan payload;
};

/// A worker begins a step: what it computes with is what it has now.
struct StepBegins {
  WorkerId worker = 0;
  Step step = 0;
  std::uint64_t lease = 0;
  core::ConstSpan params;
};

class Invariant {
 public:
  virtual ~Invariant() = default;
  /// A newcomer begins, at step `first` and with the centre as it is: of these versions, by shard.
  virtual void entered(const Cluster&, WorkerId, Step /*first*/, const std::vector<Version>& /*read*/) {}
  virtual void step_begins(const Cluster&, const StepBegins&) {}
  virtual void told(const Cluster&, WorkerId, const WorkerEvent&) {}  ///< before the half answers
  virtual void told(const Cluster&, ShardId, const ServerEvent&) {}   ///< before the half answers
  virtual void ran(const Cluster&, const ServerKernel&) {}
  virtual void dropped(const Cluster&, ShardId, const Request&) {}
  virtual void refused(const Cluster&, ShardId, const Request&) {}  ///< told() has been called; before the half answers
  /// A reduction, just performed; `before`: the members' vectors as they came, in rank order.
  virtual void performed(const Cluster&, Step, const Collectives::Task&,
                         const std::vector<std::vector<float>>& /*before*/, const std::vector<core::Span>& /*after*/) {}
  virtual void happened(const Cluster&) {}  ///< after every event of the queue
  virtual void at_rest(const Cluster&) {}   ///< at the end
};

}  // namespace troupe::explore
