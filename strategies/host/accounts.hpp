/// Hosts account waits and staleness here, for the figures that users see. Plain values and pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "strategies/host/types.hpp"

namespace troupe::strategies {

/// The cause of a wait: the worker that the others waited for, or the server that was busy with other requests.
struct Cause {
  enum class Kind : std::uint8_t { worker, server };
  Kind kind = Kind::worker;
  std::uint32_t id = 0;
  auto operator<=>(const Cause&) const = default;
};

/// The waiting in one answer: first in the server's queue, then held for a worker.
struct Wait {
  Duration queued{0};
  ShardId server = 0;
  Duration held{0};
  Cause holder{};  // the worker or server that it was held for
  [[nodiscard]] Duration total() const noexcept { return queued + held; }
};

/// Waited time by cause. The sum over all causes is the total time added.
class WaitAccount {
 public:
  /// Attributes `time`, the last part of `wait`, to its causes.
  void add(Duration time, const Wait& wait) {
    const auto held = std::min(time, wait.held);
    if (held.count() > 0) by_cause_[wait.holder] += held;
    if (time > held) by_cause_[{Cause::Kind::server, wait.server}] += time - held;
  }
  void add(const WaitAccount& other) {
    for (const auto& [cause, time] : other.by_cause_) by_cause_[cause] += time;
  }
  [[nodiscard]] const std::map<Cause, Duration>& by_cause() const noexcept { return by_cause_; }

 private:
  std::map<Cause, Duration> by_cause_;
};

/// Counts updates by their staleness, in versions of the centre: bin k has edge(k) ≤ staleness < edge(k + 1); the last bin is open.
class StalenessHistogram {
 public:
  static constexpr std::array<Version, 21> kEdges{0,  1,  2,  3,   4,   6,   8,   12,  16,  24,  32,
                                                  48, 64, 96, 128, 192, 256, 384, 512, 768, 1024};
  void add(Version staleness) noexcept {
    const auto above = std::upper_bound(kEdges.begin(), kEdges.end(), staleness);
    ++counts_[static_cast<std::size_t>(above - kEdges.begin()) - 1];
  }
  void add(const StalenessHistogram& other) noexcept {
    for (std::size_t bin = 0; bin < counts_.size(); ++bin) counts_[bin] += other.counts_[bin];
  }
  [[nodiscard]] const std::array<std::uint64_t, kEdges.size()>& counts() const noexcept { return counts_; }

 private:
  std::array<std::uint64_t, kEdges.size()> counts_{};
};

}  // namespace troupe::strategies
