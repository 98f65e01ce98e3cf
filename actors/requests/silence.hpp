/// Deadlines for silence: a wait goes on while something moves, and expires when nothing has moved for its deadline. A transfer may take
/// any time; a stalled transfer is detected.
///
/// Pure: no clock, no thread, no CAF. Owned by one actor, which reports movement and calls check() about once a second. A check counts at
/// most kMostAtOnce: a process that was stopped, or an actor that was busy, has missed reports of movement.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "core/clock.hpp"

namespace troupe::actors {

class SilenceDeadlines {
 public:
  /// A source of movement: a site of the run, or a number that the owner assigns.
  using Source = std::uint32_t;
  enum class Wait : std::uint64_t {};

  static constexpr core::Duration kMostAtOnce = std::chrono::seconds(2);

  /// Begins a wait that movement of any of `sources` prolongs. check() calls `expired` once, unless end() comes first.
  Wait begin(std::vector<Source> sources, core::Duration deadline, std::function<void()> expired);
  /// Returns false if the wait has expired.
  bool end(Wait wait);
  /// Reports that `sources` have moved since the last call.
  void moved(std::span<const Source> sources);
  void moved(Source source) { moved({&source, 1}); }
  /// Calls `expired` of every wait that has expired; the callbacks may begin and end waits.
  void check(core::Duration now);

 private:
  struct Waiting {
    std::vector<Source> sources;
    core::Duration deadline{0};
    core::Duration since{0};  // value of time_ at the last movement
    std::function<void()> expired;
  };
  std::map<Wait, Waiting> waits_;
  std::uint64_t next_ = 0;
  core::Duration time_{0};     // counted by check()
  core::Duration checked_{0};  // `now` of the last check()
};

}  // namespace troupe::actors
