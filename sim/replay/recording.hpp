/// A journal segment taken apart by member: what each half consumed, in its own order, with the snapshots in their places, and
/// the leases of each worker. Format: docs/formats/journal.md. Plain values.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/error.hpp"
#include "core/journal.hpp"
#include "data/lease.hpp"
#include "experiment/blueprint.hpp"
#include "experiment/directory/run_records.hpp"
#include "strategies/host/events.hpp"

namespace troupe::replay {

using WorkerItem = std::variant<strategies::WorkerEvent, experiment::SnapshotRecord>;
using ServerItem = std::variant<strategies::ServerEvent, experiment::SnapshotRecord>;

struct Recording {
  std::string path;
  std::vector<std::vector<WorkerItem>> workers;
  std::vector<std::vector<data::Lease>> leases;  // by worker, in the order in which they were granted
  std::vector<std::vector<ServerItem>> servers;
  std::optional<std::uint64_t> plan_hash;
  std::vector<strategies::WorkerId> absent;       // when the run began
  std::vector<strategies::WorkerId> left;         // members at its end, as far as anybody has said; ascending
  std::uint32_t version = core::kJournalVersion;  // of the segment
  bool complete =
      false;  // the writer closed it; else the process died, or is still running, and members' ends may be missing
  bool lost_members = false;  // and their ends may be missing, too
  [[nodiscard]] bool has_all_ends() const noexcept { return complete && !lost_members; }
  [[nodiscard]] std::size_t events() const noexcept;
};

/// `plan`: what the run was, its data opened. `members`: who they are where the segment begins in the middle of a run; null: everyone
/// begins. Whoever comes later belongs to the next segment, which says what it begins with. Errors: those of core::read_journal; Errc::corrupt with path and byte offset for a
/// record that is none of ours, or of a member, a vector, a batch or a part of the data that the run does not have.
[[nodiscard]] core::Result<Recording> read_recording(const std::string& path, const experiment::Blueprint& plan,
                                                     const strategies::Membership* members = nullptr);

}  // namespace troupe::replay
