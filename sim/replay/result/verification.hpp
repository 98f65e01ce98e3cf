/// What replays have found about a journal's events, and the file beside the journal that keeps it: replay.json (docs/formats/journal.md,
/// "Result of a replay"). Plain values. Thread rule: pure functions, but for remember(), which reads and replaces that file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace troupe::replay {

inline constexpr const char* kReplayFile = "replay.json";
inline constexpr std::size_t kMostReplays = 10;  // that the file keeps: the newest
/// Of the file, unless one replay has more; readers take twice that. It is read for each page of a journal.
inline constexpr std::size_t kMostReplayBytes = std::size_t{1} << 20;

/// The first event of a segment that a replay found not to be the recorded one.
struct Difference {
  std::string member{};     // "worker1", "server0"
  std::uint64_t event = 0;  // of it, as `--until` counts them
  std::string message{};    // one line
  bool operator==(const Difference&) const = default;
};

/// One replay of one segment with the recorded numbers.
struct SegmentVerification {
  int segment = 0;
  std::uint64_t bytes = 0;   // of the segment when it was read; a later reader finds as many or more
  std::uint64_t hashes = 0;  // compared, all equal
  bool complete = false;     // the segment is closed, and was replayed to its end
  std::map<std::string, std::uint64_t> members{};  // by member: how many of its events came again as recorded
  std::optional<Difference> difference{};
  bool operator==(const SegmentVerification&) const = default;
};

struct Verification {
  std::string at{};       // when it ended: "2026-01-02T03:04:05Z"
  std::string program{};  // version of the program that replayed
  std::vector<SegmentVerification> segments{};
  bool operator==(const Verification&) const = default;
};

/// Oldest first.
[[nodiscard]] std::string to_json(const std::vector<Verification>& replays);
/// Errc::corrupt: not such a text, or one of a later version.
[[nodiscard]] core::Result<std::vector<Verification>> parse_verifications(std::string_view text);

/// The newest replay of `segment`, whose file has `bytes` now. Null: none.
struct SegmentFinding {
  const Verification* replay = nullptr;
  const SegmentVerification* of = nullptr;
};
[[nodiscard]] SegmentFinding newest_of(const std::vector<Verification>& replays, std::int64_t segment,
                                       std::uint64_t bytes);
/// The newest replay that came to event `event` of `member`, or found it to differ.
struct EventFinding {
  const Verification* replay = nullptr;
  bool differs = false;
};
[[nodiscard]] EventFinding newest_about(const std::vector<Verification>& replays, std::int64_t segment,
                                        std::uint64_t bytes, std::string_view member, std::uint64_t event);

/// Adds `found` to the replay.json of a run directory, which is replaced as a whole or not at all. Errc::io or no_space names the path;
/// Errc::corrupt: the file is damaged or of a later version, and stays as it is.
[[nodiscard]] core::Result<void> remember(const std::string& run_directory, Verification found);

}  // namespace troupe::replay
