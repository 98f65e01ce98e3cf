/// Collectives in virtual time. A reduction is performed at the moment the last member of the group asks, and told to each member some
/// time later. A broadcast is told to a member some time after it and the root have asked: it does not wait for the others.
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
  /// What all members of the group must agree on.
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
  /// What came to a reduction and what became of it, in rank order.
  using Watch = std::function<void(Step step, const Task& task, const std::vector<std::vector<float>>& before,
                                   const std::vector<core::Span>& after)>;

  Collectives(EventQueue& queue, Network& network, const core::Kernels& kernels, Watch watch = {})
      : queue_(queue), network_(network), kernels_(kernels), watch_(std::move(watch)) {}
  /// `memory` is worker's part, lent until `done`.
  void ask(WorkerId worker, Step step, ExchangeId id, const Task& task, core::Span memory, Done done);
  [[nodiscard]] std::size_t open() const noexcept { return meetings_.size(); }
  [[nodiscard]] std::uint64_t performed() const noexcept { return performed_; }

 private:
  struct Part {
    core::Span memory;
    Done done;
    Duration asked{0};
  };
  struct Meeting {
    Task task;
    std::map<WorkerId, Part> parts;                            // by rank: the order of summation
    std::shared_ptr<const std::vector<float>> roots_vector{};  // as it was when the root asked; null: it has not
  };
  void perform(Meeting& meeting, Step step, WorkerId last);
  void spread(Meeting& meeting, WorkerId last);
  void bring(const Meeting& meeting, WorkerId to, Part& part, WorkerId last);
  EventQueue& queue_;
  Network& network_;
  const core::Kernels& kernels_;
  Watch watch_;
  std::map<std::pair<Step, ExchangeId>, std::vector<Meeting>> meetings_;  // disjoint groups may use the same numbers
  std::uint64_t performed_ = 0;
};

}  // namespace troupe::explore
