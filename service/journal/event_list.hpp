/// The events of a run's journal as rows, each with the place at which `troupe replay --until` stops (docs/formats/journal.md). Also while the
/// run writes it. Thread rule: pure functions of files, and what they remember in JournalPlaces.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "service/journal/journal_places.hpp"

namespace troupe::service {

inline constexpr std::uint64_t kMostJournalBytes = std::uint64_t{256} << 20;

struct JournalQuestion {
  std::string run{};                   // relative to the directory of runs
  std::int64_t segment = 0;            // 0: the newest
  std::string member{};                // "worker1", "server0"; empty: all
  std::optional<std::int64_t> step{};  // begin with the first event of a worker that is of this step or a later one
  std::int64_t from = 0;               // begin with this record of the segment
  std::int64_t limit = 100;
  std::uint64_t most_bytes = kMostJournalBytes;  // of the segment that are read
};

/// docs/formats/service.md, "Events of a journal". `places`: where records begin, as earlier questions found; null: it reads from the segment's
/// begin. Errc::config: no such run or segment; usage: no such member; corrupt, io, interrupted.
[[nodiscard]] core::Result<nlohmann::ordered_json> list_events(const std::string& directory,
                                                               const JournalQuestion& question,
                                                               const std::stop_token& stop,
                                                               JournalPlaces* places = nullptr);

}  // namespace troupe::service
