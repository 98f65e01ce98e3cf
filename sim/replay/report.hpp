/// The result of a replay, and whether it proves anything. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "experiment/reports.hpp"

namespace troupe::replay {

struct SegmentReport {
  std::string path;
  std::size_t events = 0;    // in the segment, with snapshots
  std::size_t replayed = 0;  // fewer when the segment was cut off
  std::uint64_t hashes = 0;  // snapshots compared and equal bit for bit
  bool complete = false;     // closed, and replayed to its end
};

struct ReplayReport {
  std::vector<SegmentReport> segments;
  std::size_t missing = 0;  // older segments that were removed
  std::uint64_t unrecorded =
      0;  // steps in no segment, behind the last one too: the journal was off or not writable, or the end of one is lost
  bool same_numbers = true;     // false: other settings, hashes are not compared
  experiment::Summary summary;  // recomputed; times are 0
  /// What the run's summary.json says; none: it has none.
  struct Recorded {
    [[nodiscard]] static std::optional<Recorded> of(std::string_view summary);  // the text of a summary.json
    double test_loss = 0, test_accuracy = 0;                                    // NaN: it had not been evaluated
    std::uint64_t steps = 0, samples = 0;
    std::string center_hash;
  };
  std::optional<Recorded> recorded{};
  /// What was not replayed: missing segments, and steps that no segment has.
  std::vector<experiment::Note> notes{};

  /// Adds a note, and to `unrecorded`, if no segment has the steps from `from` to `to`: before the segment `path`, or after it.
  /// `has_all_ends`: the records before them were not cut off.
  void note_before(const std::string& path, std::uint64_t from, std::uint64_t to, bool has_all_ends);
  void note_after(const std::string& path, std::uint64_t from, std::uint64_t to, bool has_all_ends);

  /// True if the replay covers the whole run.
  [[nodiscard]] bool complete() const noexcept;
  [[nodiscard]] std::size_t events() const noexcept;
  [[nodiscard]] std::size_t replayed() const noexcept;
  [[nodiscard]] std::uint64_t hashes() const noexcept;

  /// Errc::corrupt when no hash was compared (same_numbers) or no event was replayed: then the replay proves nothing.
  [[nodiscard]] core::Result<void> check() const;
};

/// The summary's line of JSON, plus the comparison's figures (docs/formats/summary.md).
[[nodiscard]] std::string to_json(const ReplayReport& report);

}  // namespace troupe::replay
