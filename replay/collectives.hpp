/// Collectives of a replay: done when the last member of the group has asked. In place, with the arithmetic of transport/reduce.hpp,
/// where the group is at one site; else as the run's exchange plan says. One thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "core/kernels.hpp"
#include "replay/site_sums.hpp"
#include "replay/wire.hpp"
#include "strategies/host/actions.hpp"

namespace troupe::replay {

class Collectives {
 public:
  /// `sums`: null where everybody is at one site. `wire` and `kernels` outlive the object.
  Collectives(const Wire& wire, std::unique_ptr<SiteSums> sums, const core::Kernels& kernels);

  struct Task {
    strategies::Group group;  // ascending
    bool broadcast = false;
    strategies::WorkerId root = 0;
    strategies::ReduceOp op = strategies::ReduceOp::mean;
    Position position{};  // of the part
    strategies::Rounding rounding = strategies::Rounding::none;
  };
  /// `part` stays untouched by its owner until done().
  void join(strategies::WorkerId worker, strategies::Step step, strategies::ExchangeId id, Task task, core::Span part);
  /// Has the collective that `worker` joined as `id` been computed? Says so once.
  [[nodiscard]] bool take_done(strategies::WorkerId worker, strategies::ExchangeId id);

 private:
  using Key = std::tuple<strategies::Group, strategies::Step, strategies::ExchangeId>;
  void over_sites(const Task& task, const std::vector<core::Span>& parts, std::size_t root, float scale);

  const Wire& wire_;
  std::unique_ptr<SiteSums> sums_;
  const core::Kernels& kernels_;
  std::map<Key, std::map<strategies::WorkerId, core::Span>> open_;
  std::set<std::pair<strategies::WorkerId, strategies::ExchangeId>> done_;
};

}  // namespace troupe::replay
