/// Reductions over sites: the run's algorithm (exchange::make_collective; asa in place of ar and shm), run between
/// endpoints in this thread. Nothing waits: each member's operations match those that the others have posted. One thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/kernels.hpp"
#include "experiment/exchange_plan.hpp"
#include "strategies/host/actions.hpp"
#include "transport/exchange/collectives/collective.hpp"

namespace troupe::replay {

class SiteSums {
 public:
  /// One member per worker. `plan` and `kernels` outlive the object. Errc::io without file descriptors.
  [[nodiscard]] static core::Result<std::unique_ptr<SiteSums>> create(const experiment::ExchangePlan& plan,
                                                                      std::size_t workers,
                                                                      const core::Kernels& kernels);
  ~SiteSums();
  SiteSums(const SiteSums&) = delete;
  SiteSums& operator=(const SiteSums&) = delete;

  /// In place. `vectors`: those of the group's members in its order, in the form in which they are sent.
  void run(const strategies::Group& group, const std::vector<core::Span>& vectors, float scale,
           core::Rounding rounding);

 private:
  struct Member;
  SiteSums(const experiment::ExchangePlan& plan, const core::Kernels& kernels);
  [[nodiscard]] core::Result<void> meet(std::size_t workers);

  const experiment::ExchangePlan& plan_;
  const core::Kernels& kernels_;
  core::SteadyClock clock_;  // unused: nothing waits
  std::shared_ptr<transport::CompletionQueue> completions_;
  std::vector<std::unique_ptr<Member>> members_;  // by rank
};

}  // namespace troupe::replay
