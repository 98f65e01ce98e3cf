/// What a replay came to, and whether it proves anything. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "experiment/reports.hpp"

namespace troupe::replay {

struct SegmentReport {
  std::string path;
  std::size_t events = 0;    // in the segment, snapshots included
  std::size_t replayed = 0;  // fewer when it was cut off
  std::uint64_t hashes = 0;  // snapshots that were compared, and were bit for bit the same
  bool complete = false;     // it was closed, and all of it was replayed
};

struct ReplayReport {
  std::vector<SegmentReport> segments;
  std::size_t missing = 0;  // older segments, which are not there any more
  std::uint64_t unrecorded =
      0;  // steps between two segments that neither has: the journal was off or could not be written, or the first one's end is lost
  bool same_numbers = true;     // else under other settings: hashes are not compared
  experiment::Summary summary;  // computed anew; times are 0
  /// What was not replayed, in words: missing segments, and steps that no segment has.
  std::vector<experiment::Note> notes{};

  /// Everything that the run did, from its beginning to its end, was replayed.
  [[nodiscard]] bool complete() const noexcept;
  [[nodiscard]] std::size_t events() const noexcept;
  [[nodiscard]] std::size_t replayed() const noexcept;
  [[nodiscard]] std::uint64_t hashes() const noexcept;

  /// Errc::corrupt when nothing was compared (same_numbers), or nothing was replayed: then nothing is known.
  [[nodiscard]] core::Result<void> check() const;
};

/// The summary's line of JSON, and what was compared (docs/formats/summary.md).
[[nodiscard]] std::string to_json(const ReplayReport& report);

}  // namespace troupe::replay
