/// Deadlines for silence: a wait goes on while something moves, and ends when nothing has moved for so long. A transfer may take as long
/// as it takes; one that stands still is noticed.
///
/// Pure: no clock, no thread, no CAF. Owned by one actor, which says what has moved and calls check() about once a second. Between two
/// checks at most kMostAtOnce passes: a process that was stopped, or an actor that was busy, has not heard what moved meanwhile.
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
  /// What may move: a site of the run, or what its owner numbers otherwise.
  using Source = std::uint32_t;
  enum class Wait : std::uint64_t {};

  static constexpr core::Duration kMostAtOnce = std::chrono::seconds(2);

  /// A wait for something that any of `sources` may bring nearer. `expired` is called once, by check(), unless end() comes first.
  Wait begin(std::vector<Source> sources, core::Duration deadline, std::function<void()> expired);
  /// False: it has expired.
  bool end(Wait wait);
  /// Something of these has moved since the last call.
  void moved(std::span<const Source> sources);
  void moved(Source source) { moved({&source, 1}); }
  /// Calls what has expired; that may begin and end waits.
  void check(core::Duration now);

 private:
  struct Waiting {
    std::vector<Source> sources;
    core::Duration deadline{0};
    core::Duration since{0};  // of time_
    std::function<void()> expired;
  };
  std::map<Wait, Waiting> waits_;
  std::uint64_t next_ = 0;
  core::Duration time_{0};     // that has passed
  core::Duration checked_{0};  // when
};

}  // namespace troupe::actors
