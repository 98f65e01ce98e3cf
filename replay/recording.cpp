#include "replay/recording.hpp"

#include <fmt/format.h>

#include "core/journal.hpp"
#include "strategies/host/journal_codec.hpp"

namespace troupe::replay {

using experiment::RunRecordKind;

namespace {

constexpr std::uint64_t kSegmentHeader = 12;
constexpr std::uint64_t kRecordFrame = 18;  // what a record costs beside its payload

/// Puts one record where it belongs.
class Sorter {
 public:
  explicit Sorter(Recording& recording) : to_(recording) {}

  core::Result<void> add(const core::JournalRecord& record) {
    if (strategies::is_worker_event(record.kind)) {
      auto event = strategies::decode_worker_event(record);
      if (!event) return tl::unexpected(event.error());
      return put(to_.workers, event->worker, "worker", std::move(event->event));
    }
    if (strategies::is_server_event(record.kind)) {
      auto event = strategies::decode_server_event(record);
      if (!event) return tl::unexpected(event.error());
      return put(to_.servers, event->shard, "server", std::move(event->event));
    }
    switch (static_cast<RunRecordKind>(record.kind)) {
      case RunRecordKind::lease_granted: return add_lease(record);
      case RunRecordKind::snapshot: return add_snapshot(record);
      case RunRecordKind::plan: return add_plan(record);
      case RunRecordKind::end: to_.complete = true; return {};
    }
    return core::fail(core::Errc::corrupt, fmt::format("journal: a record of unknown kind {:#06x}", record.kind));
  }

 private:
  template <class List, class Item>
  core::Result<void> put(std::vector<List>& lists, std::uint32_t member, const char* what, Item item) {
    if (member >= lists.size()) {
      return core::fail(core::Errc::corrupt,
                        fmt::format("journal: a record of {} {}, but the run has {}", what, member, lists.size()));
    }
    lists[member].push_back(std::move(item));
    return {};
  }
  core::Result<void> add_lease(const core::JournalRecord& record) {
    const auto granted = experiment::decode_lease(record);
    if (!granted) return tl::unexpected(granted.error());
    return put(to_.leases, granted->worker, "worker", granted->lease);
  }
  core::Result<void> add_snapshot(const core::JournalRecord& record) {
    const auto snapshot = experiment::decode_snapshot(record);
    if (!snapshot) return tl::unexpected(snapshot.error());
    return snapshot->server ? put(to_.servers, snapshot->member, "server", *snapshot)
                            : put(to_.workers, snapshot->member, "worker", *snapshot);
  }
  core::Result<void> add_plan(const core::JournalRecord& record) {
    const auto plan = experiment::decode_plan(record);
    if (!plan) return tl::unexpected(plan.error());
    to_.plan_hash = plan->hash;
    return {};
  }

  Recording& to_;
};

}  // namespace

std::size_t Recording::events() const noexcept {
  std::size_t sum = 0;
  for (const auto& worker : workers) sum += worker.size();
  for (const auto& server : servers) sum += server.size();
  return sum;
}

core::Result<Recording> read_recording(const std::string& path, std::uint32_t workers, std::uint32_t servers) {
  const auto contents = core::read_journal(path);
  if (!contents) return tl::unexpected(contents.error());
  Recording recording;
  recording.path = path;
  recording.workers.resize(workers);
  recording.leases.resize(workers);
  recording.servers.resize(servers);
  Sorter sorter(recording);
  auto offset = kSegmentHeader;
  for (const auto& record : contents->records) {
    if (auto added = sorter.add(record); !added) {
      return core::fail(added.error().code, fmt::format("{}, byte {}: {}", path, offset, added.error().message));
    }
    offset += kRecordFrame + record.payload.size();
  }
  if (contents->cut_off) recording.complete = false;
  return recording;
}

}  // namespace troupe::replay
