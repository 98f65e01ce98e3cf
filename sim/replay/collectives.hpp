/// Collectives of a replay. A reduction completes when the last member of the group has joined. Within one site it runs in place with the
/// arithmetic of transport/exchange/reduce.hpp; between sites it follows the run's exchange plan. A broadcast completes for a member when
/// that member and the root have joined, as in a run between sites; it does not wait for the others. One thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "core/kernels.hpp"
#include "sim/replay/site_sums.hpp"
#include "sim/replay/wire.hpp"
#include "strategies/host/actions.hpp"

namespace troupe::replay {

class Collectives {
 public:
  /// `sums`: null when all members are at one site. `wire` and `kernels` outlive the object.
  Collectives(const Wire& wire, std::unique_ptr<SiteSums> sums, const core::Kernels& kernels);

  struct Task {
    strategies::Group group;  // ascending
    bool broadcast = false;
    strategies::WorkerId root = 0;
    strategies::ReduceOp op = strategies::ReduceOp::mean;
    Position position{};  // position of the part
    strategies::Rounding rounding = strategies::Rounding::none;
  };
  /// The caller does not touch `part` until take_done() returns true.
  void join(strategies::WorkerId worker, strategies::Step step, strategies::ExchangeId id, Task task, core::Span part);
  /// True if the collective that `worker` joined as `id` has completed. Returns true once.
  [[nodiscard]] bool take_done(strategies::WorkerId worker, strategies::ExchangeId id);

 private:
  using Key = std::tuple<strategies::Group, strategies::Step, strategies::ExchangeId>;
  /// A broadcast that some members have not joined yet.
  struct PendingBroadcast {
    std::size_t missing = 0;                               // members that have not joined
    std::vector<float> vector{};                           // the root's when it joined; empty: not joined yet
    std::map<strategies::WorkerId, core::Span> waiting{};  // for the root
  };
  void join_broadcast(strategies::WorkerId worker, const Key& key, const Task& task, core::Span part);
  void spread(strategies::WorkerId to, const Task& task, core::ConstSpan vector, core::Span part);
  [[nodiscard]] bool is_apart(const strategies::Group& group) const;
  void over_sites(const Task& task, const std::vector<core::Span>& parts, float scale);

  const Wire& wire_;
  std::unique_ptr<SiteSums> sums_;
  const core::Kernels& kernels_;
  std::map<Key, std::map<strategies::WorkerId, core::Span>> open_;
  std::map<Key, PendingBroadcast> pending_;
  std::set<std::pair<strategies::WorkerId, strategies::ExchangeId>> done_;
};

}  // namespace troupe::replay
