/// A journal segment split by member: the events that each rule consumed, in its own order, with the snapshots in their places, and the
/// leases of each worker. Format: docs/formats/journal.md. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/error.hpp"
#include "core/journal.hpp"
#include "data/order/lease.hpp"
#include "experiment/directory/run_records.hpp"
#include "experiment/run_spec.hpp"
#include "strategies/host/events.hpp"

namespace troupe::replay {

using WorkerItem = std::variant<strategies::WorkerEvent, experiment::SnapshotRecord>;
using ServerItem = std::variant<strategies::ServerEvent, experiment::SnapshotRecord>;

struct Recording {
  std::string path;
  std::vector<std::vector<WorkerItem>> workers;
  std::vector<std::vector<data::Lease>> leases;  // by worker, in order of granting
  std::vector<std::vector<ServerItem>> servers;
  std::optional<std::uint64_t> plan_hash;
  std::vector<strategies::WorkerId> absent;       // not members when the run began
  std::vector<strategies::WorkerId> left;         // members at its end, by the latest recorded membership; ascending
  std::vector<strategies::WorkerId> stayed;       // members from its beginning to its end; ascending
  std::uint32_t version = core::kJournalVersion;  // of the segment's format
  bool complete =
      false;  // the writer closed it; else the process died or still runs, and members' last events may be missing
  bool lost_members = false;  // their last events may be missing too
  [[nodiscard]] bool has_all_ends() const noexcept { return complete && !lost_members; }
  [[nodiscard]] std::size_t events() const noexcept;
};

/// The step that a worker computes when its rule consumes this, from 0; nothing: none.
[[nodiscard]] std::optional<std::uint64_t> computed_step(const WorkerItem& item);

/// `spec`: the run's spec, its data opened. `members`: the members when the segment begins in the middle of a run; null: all members
/// start with the segment. A later newcomer belongs to the next segment, which records its start. Errors: those of core::read_journal;
/// Errc::corrupt with path and byte offset for an unknown record, or one of a member, vector, batch or part of the data that the run does
/// not have.
[[nodiscard]] core::Result<Recording> read_recording(const std::string& path, const experiment::RunSpec& spec,
                                                     const strategies::Membership* members = nullptr);

}  // namespace troupe::replay
