/// Stops a grid or a sweep, which trains runs in a pool, at a request or after an error of its own: runs under way save a checkpoint and end; after
/// kSavingDeadline_s they are killed. The second Ctrl-C, which leaves at once, belongs to the process (apps/interrupt.hpp). One thread, but
/// for the request.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string_view>
#include <vector>

#include "apps/grid/pool/run_pool.hpp"
#include "apps/grid/progress.hpp"
#include "core/clock.hpp"
#include "core/file_descriptor.hpp"

namespace troupe::grid {

class Stopping {
 public:
  /// The longest wait between two looks at the runs.
  static constexpr std::chrono::milliseconds kTick{500};
  static constexpr std::string_view kBySignal =
      "stopping: runs under way save a checkpoint; Ctrl-C again leaves without it";
  /// Behind the error of a grid or a sweep that must end itself.
  static constexpr std::string_view kAfterError = ": no further run begins; runs under way save a checkpoint";

  /// All outlive this object.
  Stopping(std::stop_token stop, RunPool& pool, Progress& progress, const core::Clock& clock);
  Stopping(const Stopping&) = delete;
  Stopping& operator=(const Stopping&) = delete;

  [[nodiscard]] bool requested() const { return stop_.stop_requested(); }
  /// Call it in every round until pool.count() is 0: the first call asks the runs to save and says `why`. A call after
  /// kSavingDeadline_s kills them.
  void proceed(std::string_view why = kBySignal);
  /// Runs that have ended; waits for the first one for a tick, or until a stop is requested. REQUIRES pool.count() > 0.
  [[nodiscard]] std::vector<RunPool::Ended> wait();
  /// Waits for a tick, or until a stop is requested: nothing trains here.
  void rest() const;

 private:
  std::stop_token stop_;
  RunPool& pool_;
  Progress& progress_;
  const core::Clock& clock_;
  core::FileDescriptor wake_;  // readable once a stop is requested, until the next proceed()
  std::optional<core::Duration> told_at_;
  std::stop_callback<std::function<void()>> on_stop_;  // the last member: it uses the others
};

}  // namespace troupe::grid
