/// Collectives in virtual time: performed at the moment the last member of the group asks, told to each member some time later.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "core/kernels.hpp"
#include "explore/network.hpp"
#include "explore/words.hpp"

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

  Collectives(EventQueue& queue, Network& network, const core::Kernels& kernels) noexcept
      : queue_(queue), network_(network), kernels_(kernels) {}
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
    std::map<WorkerId, Part> parts;  // by rank: the order of summation
  };
  EventQueue& queue_;
  Network& network_;
  const core::Kernels& kernels_;
  std::map<std::pair<Step, ExchangeId>, std::vector<Meeting>> meetings_;  // disjoint groups may use the same numbers
  std::uint64_t performed_ = 0;
};

}  // namespace troupe::explore
