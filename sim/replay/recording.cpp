#include "sim/replay/recording.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "core/journal.hpp"
#include "experiment/state/start_state.hpp"
#include "sim/replay/describe.hpp"
#include "strategies/host/journal_codec.hpp"

namespace troupe::replay {

using experiment::RunRecordKind;
using experiment::RunSpec;

namespace {

constexpr std::uint64_t kSegmentHeader = 12;
constexpr std::uint64_t kRecordFrame = 18;  // bytes of a record beside its payload

core::Result<void> refuse(const std::string& what) { return core::fail(core::Errc::corrupt, "journal: " + what); }

/// By lost worker: number of its items when the loss was recorded.
using LostAt = std::map<strategies::WorkerId, std::size_t>;

/// Sorts one record to its member and checks it: a record that names a missing member, vector or batch must not be used.
class Sorter {
 public:
  Sorter(const RunSpec& spec, Recording& recording)
      : spec_(spec), worker_slots_(experiment::state_slots(spec)), to_(recording) {
    worker_slots_.push_back(strategies::kStatistics);
    server_slots_.push_back(strategies::kCenter);
    for (std::uint8_t k = 0; k < spec.needs.server_states; ++k) server_slots_.push_back(strategies::server_state(k));
  }

  core::Result<void> add(const core::JournalRecord& record) {
    if (strategies::is_worker_event(record.kind)) {
      auto event = strategies::decode_worker_event(record);
      if (!event) return tl::unexpected(event.error());
      return std::visit([this](const auto& e) { return check(e); }, event->event).and_then([&] {
        return put(to_.workers, event->worker, "worker", std::move(event->event));
      });
    }
    if (strategies::is_server_event(record.kind)) {
      auto event = strategies::decode_server_event(record);
      if (!event) return tl::unexpected(event.error());
      return std::visit([this](const auto& e) { return check(e); }, event->event).and_then([&] {
        return put(to_.servers, event->shard, "server", std::move(event->event));
      });
    }
    switch (static_cast<RunRecordKind>(record.kind)) {
      case RunRecordKind::lease_granted:
      case RunRecordKind::lease_with_factor: return add_lease(record);
      case RunRecordKind::snapshot: return add_snapshot(record);
      case RunRecordKind::plan: return add_plan(record);
      case RunRecordKind::end: to_.complete = true; return {};
      case RunRecordKind::absent: return add_absent(record);
      case RunRecordKind::lost: return add_lost(record);
    }
    return refuse(fmt::format("a record of unknown kind {:#06x}", record.kind));
  }
  [[nodiscard]] const LostAt& lost_at() const { return lost_at_; }

 private:
  template <class List, class Item>
  core::Result<void> put(std::vector<List>& lists, std::uint32_t member, const char* what, Item item) {
    if (auto there = check_member(member, lists.size(), what); !there) return there;
    lists[member].push_back(std::move(item));
    return {};
  }
  static core::Result<void> check_member(std::uint32_t member, std::size_t members, const char* what) {
    if (member < members) return {};
    return refuse(fmt::format("a record of {} {}, but the run has {}", what, member, members));
  }

  template <class Event>
  static core::Result<void> check(const Event&) {
    return {};
  }
  static core::Result<void> check(const strategies::BucketReady& event) {
    if (event.bucket >= 0 && event.bucket < event.buckets) return {};
    return refuse(fmt::format("bucket {} of {}", event.bucket, event.buckets));
  }
  core::Result<void> check(const strategies::Replied& event) const {
    return check_member(event.shard, spec_.servers, "server");
  }
  core::Result<void> check(const strategies::PeerMessageArrived& event) const {
    const bool own = event.slot.kind != strategies::SlotKind::staged || has(worker_slots_, event.slot);
    if (own) return refuse(fmt::format("a peer message in {}, which is the worker's own", describe(event.slot)));
    return check_member(event.from, spec_.workers, "worker");
  }
  core::Result<void> check(const strategies::SendSkipped& event) const {
    return check_member(event.to, spec_.workers, "worker");
  }
  core::Result<void> check(const strategies::MembershipChanged& event) const {
    const auto& workers = event.membership.workers;  // ascending
    if (workers.empty()) return refuse("a run without workers");
    return check_member(workers.back(), spec_.workers, "worker");
  }
  core::Result<void> check(const strategies::Request& event) const {
    return check_member(event.worker, spec_.workers, "worker");
  }

  core::Result<void> add_lease(const core::JournalRecord& record) {
    const auto granted = experiment::decode_lease(record);
    if (!granted) return tl::unexpected(granted.error());
    if (auto there = check_member(granted->worker, spec_.workers, "worker"); !there) return there;
    const auto& lease = granted->lease;
    const auto batch = spec_.settings->batch(granted->worker);
    const auto samples = spec_.source.train->size();
    if (lease.count < 1 || lease.count > batch || lease.first < 0 || lease.first >= samples) {
      return refuse(fmt::format("a lease of {} samples from {} on; worker {} computes {} of {}", lease.count,
                                lease.first, granted->worker, batch, samples));
    }
    const auto epochs = static_cast<double>(spec_.settings->run.epochs);
    if (lease.epoch >= epochs || !(lease.epoch_position >= 0 && lease.epoch_position <= epochs)) {
      return refuse(fmt::format("a lease of epoch {}, position {:g}; the run has {:g}", lease.epoch,
                                lease.epoch_position, epochs));
    }
    if (!(lease.lr_factor > 0 && std::isfinite(lease.lr_factor)))
      return refuse(fmt::format("a lease with the learning-rate factor {:g}", lease.lr_factor));
    return put(to_.leases, granted->worker, "worker", lease);
  }
  core::Result<void> add_snapshot(const core::JournalRecord& record) {
    const auto snapshot = experiment::decode_snapshot(record);
    if (!snapshot) return tl::unexpected(snapshot.error());
    const auto* what = snapshot->server ? "server" : "worker";
    if (!has(snapshot->server ? server_slots_ : worker_slots_, snapshot->slot))
      return refuse(fmt::format("a snapshot of {}, which no {} of the run has", describe(snapshot->slot), what));
    return snapshot->server ? put(to_.servers, snapshot->member, what, *snapshot)
                            : put(to_.workers, snapshot->member, what, *snapshot);
  }
  static bool has(const std::vector<strategies::Slot>& slots, strategies::Slot slot) {
    return std::find(slots.begin(), slots.end(), slot) != slots.end();
  }
  core::Result<void> add_absent(const core::JournalRecord& record) {
    const auto absent = experiment::decode_absent(record);
    if (!absent) return tl::unexpected(absent.error());
    if (auto there = check_member(absent->worker, spec_.workers, "worker"); !there) return there;
    to_.absent.push_back(absent->worker);
    return {};
  }
  /// Members learn of the loss by their own events. Only a place's first loss counts: its second life is not part of this segment, nor is
  /// its third.
  core::Result<void> add_lost(const core::JournalRecord& record) {
    const auto lost = experiment::decode_lost(record);
    if (!lost) return tl::unexpected(lost.error());
    if (auto there = check_member(lost->worker, spec_.workers, "worker"); !there) return there;
    lost_at_.emplace(lost->worker, to_.workers[lost->worker].size());
    return {};
  }
  core::Result<void> add_plan(const core::JournalRecord& record) {
    const auto plan = experiment::decode_plan(record);
    if (!plan) return tl::unexpected(plan.error());
    to_.plan_hash = plan->hash;
    return {};
  }

  const RunSpec& spec_;
  std::vector<strategies::Slot> worker_slots_;
  std::vector<strategies::Slot> server_slots_;
  Recording& to_;
  LostAt lost_at_;
};

/// Every membership that a member received.
std::vector<strategies::Membership> memberships(const Recording& recording) {
  std::vector<strategies::Membership> heard;
  const auto look = [&](const auto& item) {
    using Event = std::variant_alternative_t<0, std::decay_t<decltype(item)>>;
    const auto* event = std::get_if<Event>(&item);
    const auto* changed = event ? std::get_if<strategies::MembershipChanged>(event) : nullptr;
    if (changed) heard.push_back(changed->membership);
  };
  for (const auto& items : recording.workers) std::ranges::for_each(items, look);
  for (const auto& items : recording.servers) std::ranges::for_each(items, look);
  return heard;
}

template <class Event>
bool is(const WorkerItem& item) {
  const auto* event = std::get_if<strategies::WorkerEvent>(&item);
  return event && std::holds_alternative<Event>(*event);
}

/// The end of the worker's own life, where its replacement's may begin. The loss is recorded before all items of the newcomer. A lost
/// worker may have no items: then the first Started is the newcomer's. In journals that do not record losses the first Started is the
/// worker's own if all members begin with the segment.
std::vector<WorkerItem>::iterator end_of_life(std::vector<WorkerItem>& items, const std::size_t* lost_at, bool begins) {
  const std::size_t own = lost_at ? *lost_at : begins && !items.empty() ? 1 : 0;
  return std::find_if(items.begin() + static_cast<std::ptrdiff_t>(own), items.end(), is<strategies::Started>);
}

/// A lost worker's last items may be missing. Its replacement belongs to the next segment, which records its start; without a next
/// segment its items are ignored.
void cut_lives(Recording& recording, const strategies::Membership* members, const LostAt& lost_at) {
  using strategies::StepDone;
  const auto heard = memberships(recording);
  const auto is_in = [](const std::vector<strategies::WorkerId>& list, strategies::WorkerId w) {
    return std::ranges::find(list, w) != list.end();
  };
  for (strategies::WorkerId w = 0; w < recording.workers.size(); ++w) {
    auto& items = recording.workers[w];
    const bool lives = members ? is_in(members->workers, w) : !is_in(recording.absent, w);
    const auto loss = lost_at.find(w);
    const bool named = loss != lost_at.end();  // perhaps before a member recorded the news
    const bool lost =
        lives && (named || std::ranges::any_of(heard, [&](const auto& now) { return !is_in(now.workers, w); }));
    if (lives && !lost) {
      recording.stayed.push_back(w);
      continue;
    }
    const auto end = lives ? end_of_life(items, named ? &loss->second : nullptr, !members) : items.begin();
    recording.lost_members |= lost || std::any_of(end, items.end(), is<StepDone>);
    items.erase(end, items.end());
    if (!lives) recording.leases[w].clear();
  }
  const auto last = std::ranges::max_element(heard, {}, &strategies::Membership::epoch);
  if (last != heard.end())
    recording.left = last->workers;
  else if (members)
    recording.left = members->workers;
  for (strategies::WorkerId w = 0; heard.empty() && !members && w < recording.workers.size(); ++w)
    recording.left.push_back(w);
}

}  // namespace

std::size_t Recording::events() const noexcept {
  std::size_t sum = 0;
  for (const auto& worker : workers) sum += worker.size();
  for (const auto& server : servers) sum += server.size();
  return sum;
}

std::optional<std::uint64_t> computed_step(const WorkerItem& item) {
  const auto* const event = std::get_if<strategies::WorkerEvent>(&item);
  if (event == nullptr) return std::nullopt;
  if (const auto* bucket = std::get_if<strategies::BucketReady>(event)) return bucket->step;
  if (const auto* done = std::get_if<strategies::StepDone>(event)) return done->step;
  return std::nullopt;
}

core::Result<Recording> read_recording(const std::string& path, const RunSpec& spec,
                                       const strategies::Membership* members) {
  const auto contents = core::read_journal(path);
  if (!contents) return tl::unexpected(contents.error());
  Recording recording;
  recording.path = path;
  recording.version = contents->version;
  recording.workers.resize(spec.workers);
  recording.leases.resize(spec.workers);
  recording.servers.resize(spec.servers);
  Sorter sorter(spec, recording);
  auto offset = kSegmentHeader;
  for (const auto& record : contents->records) {
    if (auto added = sorter.add(record); !added) {
      return core::fail(added.error().code, fmt::format("{}, byte {}: {}", path, offset, added.error().message));
    }
    offset += kRecordFrame + record.payload.size();
  }
  if (contents->cut_off) recording.complete = false;
  cut_lives(recording, members, sorter.lost_at());
  return recording;
}

}  // namespace troupe::replay
