/// Collectives in virtual time. A reduction runs when the last member of the group asks; each member is told some time later. A broadcast
/// is told to a member some time after that member and the root have asked; it does not wait for the others. One thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/kernels.hpp"
#include "sim/explore/world/network.hpp"
#include "sim/explore/world/words.hpp"

namespace troupe::explore {

class Collectives {
 public:
  /// The task; all members of the group must agree on it.
  struct Task {
    Group group;  // ascending
    Slot slot;
    int bucket = -1;
    bool broadcast = false;
    ReduceOp op = ReduceOp::mean;
    WorkerId root = 0;
    bool operator==(const Task&) const = default;
  };
  using Done = std::function<void(Duration waited, WorkerId last)>;
  /// Called with a reduction's inputs and results, in rank order.
  using Watch = std::function<void(Step step, const Task& task, const std::vector<std::vector<float>>& before,
                                   const std::vector<core::Span>& after)>;

  Collectives(EventQueue& queue, Network& network, const core::Kernels& kernels, Watch watch = {})
      : queue_(queue), network_(network), kernels_(kernels), watch_(std::move(watch)) {}
  /// `memory`: the worker's part, lent until `done`.
  void ask(WorkerId worker, Step step, ExchangeId id, const Task& task, core::Span memory, Done done);
  [[nodiscard]] std::size_t open() const noexcept { return collectives_.size(); }
  [[nodiscard]] std::uint64_t performed() const noexcept { return performed_; }

 private:
  struct Part {
    core::Span memory;
    Done done;
    Duration asked{0};
  };
  struct PendingCollective {
    Task task;
    std::map<WorkerId, Part> parts;                            // by rank: the order of summation
    std::shared_ptr<const std::vector<float>> roots_vector{};  // the root's at its request; null: not requested yet
  };
  void perform(PendingCollective& collective, Step step, WorkerId last);
  void spread(PendingCollective& collective, WorkerId last);
  void bring(const PendingCollective& collective, WorkerId to, Part& part, WorkerId last);
  EventQueue& queue_;
  Network& network_;
  const core::Kernels& kernels_;
  Watch watch_;
  // Disjoint groups may share step and id.
  std::map<std::pair<Step, ExchangeId>, std::vector<PendingCollective>> collectives_;
  std::uint64_t performed_ = 0;
};

}  // namespace troupe::explore
