/// Collectives of a replay: done when the last member of the group has asked, with the arithmetic of transport/reduce.hpp. One thread.
#pragma once

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "core/kernels.hpp"
#include "strategies/host/actions.hpp"

namespace troupe::replay {

class Collectives {
 public:
  explicit Collectives(const core::Kernels& kernels) : kernels_(kernels) {}

  struct Task {
    strategies::Group group;  // ascending
    bool broadcast = false;
    strategies::WorkerId root = 0;
    strategies::ReduceOp op = strategies::ReduceOp::mean;
  };
  /// `part` stays untouched by its owner until done().
  void join(strategies::WorkerId worker, strategies::Step step, strategies::ExchangeId id, Task task, core::Span part);
  /// Has the collective that `worker` joined as `id` been computed? Says so once.
  [[nodiscard]] bool take_done(strategies::WorkerId worker, strategies::ExchangeId id);

 private:
  using Key = std::tuple<strategies::Group, strategies::Step, strategies::ExchangeId>;
  const core::Kernels& kernels_;
  std::map<Key, std::map<strategies::WorkerId, core::Span>> open_;
  std::set<std::pair<strategies::WorkerId, strategies::ExchangeId>> done_;
};

}  // namespace troupe::replay
