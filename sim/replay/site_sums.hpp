/// Reductions and broadcasts over sites: what the run's algorithm comes to, by running it (exchange::make_collective) between endpoints of
/// this thread. Nothing waits: what a member posts meets what the others have posted. One thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/kernels.hpp"
#include "transport/exchange/collectives/collective.hpp"
#include "experiment/exchange_plan.hpp"
#include "strategies/host/actions.hpp"

namespace troupe::replay {

class SiteSums {
 public:
  /// A member for each of `workers`. `plan` and `kernels` outlive the object. Errc::io without file descriptors.
  [[nodiscard]] static core::Result<std::unique_ptr<SiteSums>> create(const experiment::ExchangePlan& plan,
                                                                      std::size_t workers,
                                                                      const core::Kernels& kernels);
  ~SiteSums();
  SiteSums(const SiteSums&) = delete;
  SiteSums& operator=(const SiteSums&) = delete;

  /// In place: `vectors`, of group's members in its order, as they travel.
  void run(const strategies::Group& group, const std::vector<core::Span>& vectors, float scale, core::Rounding rounding);

 private:
  struct Member;
  SiteSums(const experiment::ExchangePlan& plan, const core::Kernels& kernels);
  [[nodiscard]] core::Result<void> meet(std::size_t workers);

  const experiment::ExchangePlan& plan_;
  const core::Kernels& kernels_;
  core::SteadyClock clock_;  // nobody looks at it: nothing waits
  std::shared_ptr<transport::CompletionQueue> completions_;
  std::vector<std::unique_ptr<Member>> members_;  // by rank
};

}  // namespace troupe::replay
