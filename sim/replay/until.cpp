#include "sim/replay/until.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiment/state/start_state.hpp"
#include "nn/arenas/host_view.hpp"
#include "nn/hash.hpp"
#include "sim/replay/describe.hpp"
#include "sim/replay/segment.hpp"
#include "sim/replay/server.hpp"
#include "sim/replay/worker.hpp"

namespace troupe::replay {
namespace {

using strategies::WorkerEvent;

template <class Number>
std::optional<Number> number_of(std::string_view digits) {
  Number number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc{} && end == digits.data() + digits.size() ? std::optional(number) : std::nullopt;
}

tl::unexpected<core::Error> no_place(std::string_view text) {
  return core::fail(core::Errc::usage,
                    fmt::format("--until {}: give a step of all workers (40), a step of one (worker1:40), or an event "
                                "of a member (worker1#31, server0#12), with a segment before it if you want (2/40)",
                                text));
}

/// Whether so many steps have ended with this.
bool ends_step(const WorkerItem& item, std::uint64_t steps) {
  const auto* const event = std::get_if<WorkerEvent>(&item);
  const auto* const done = event == nullptr ? nullptr : std::get_if<strategies::StepDone>(event);
  return done != nullptr && done->step + 1 == steps;
}

template <class Item>
bool is_snapshot(const Item& item) {
  return std::holds_alternative<experiment::SnapshotRecord>(item);
}

/// Of a skip the worker's host is told with the step that it follows: the two are not divided.
bool follows_at_once(const WorkerItem& item) {
  const auto* const event = std::get_if<WorkerEvent>(&item);
  return is_snapshot(item) || (event != nullptr && std::holds_alternative<strategies::SendSkipped>(*event));
}
bool follows_at_once(const ServerItem& item) { return is_snapshot(item); }

template <class Event>
bool is_event(const WorkerItem& item) {
  const auto* const event = std::get_if<WorkerEvent>(&item);
  return event != nullptr && std::holds_alternative<Event>(*event);
}

template <class... Events>
bool is_one_of(const WorkerItem& item) {
  return (is_event<Events>(item) || ...);
}

/// Whether this came while the worker computed a step: behind the step's first bucket, and before its end.
bool arrives_in_step(const std::vector<WorkerItem>& items, std::size_t event) {
  using namespace strategies;
  if (!is_one_of<Replied, ExchangeDone, SendSkipped, MembershipChanged, DeadlinePassed>(items[event])) return false;
  const auto begin = std::make_reverse_iterator(items.begin() + static_cast<std::ptrdiff_t>(event));
  const auto before = std::find_if(begin, items.rend(), is_one_of<Started, BucketReady, StepDone>);
  return before != items.rend() && is_event<BucketReady>(*before);
}

/// A worker's host takes what arrives during a step, and all messages of other workers, at the end of the step, with it: behind such an
/// arrival comes that end.
std::size_t end_of_taking(const std::vector<WorkerItem>& items, std::size_t event) {
  if (!is_event<strategies::PeerMessageArrived>(items[event]) && !arrives_in_step(items, event)) return event + 1;
  const auto end = std::find_if(items.begin() + static_cast<std::ptrdiff_t>(event), items.end(),
                                is_one_of<strategies::StepDone, strategies::Stopped>);
  return end == items.end() ? items.size() : static_cast<std::size_t>(end - items.begin()) + 1;
}
std::size_t end_of_taking(const std::vector<ServerItem>&, std::size_t event) { return event + 1; }

template <class Items>
bool cut_behind_event(Items& items, std::uint64_t event) {
  if (event >= items.size()) return false;
  auto end = end_of_taking(items, static_cast<std::size_t>(event));
  while (end < items.size() && follows_at_once(items[end])) ++end;
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(end), items.end());
  return true;
}

/// What comes before it computes the next one belongs to a step.
std::size_t end_of_step(const std::vector<WorkerItem>& items, std::uint64_t steps) {
  const auto next = std::ranges::find_if(items, [&](const WorkerItem& item) {
    const auto computed = computed_step(item);
    return computed && *computed >= steps;
  });
  return static_cast<std::size_t>(next - items.begin());
}

bool has_step(const std::vector<WorkerItem>& items, std::uint64_t steps) {
  return std::ranges::any_of(items, [&](const WorkerItem& item) { return ends_step(item, steps); });
}

std::string hash_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

/// What a member has consumed. Only the members that the place names are cut there: the others' recordings go on behind it.
template <class Member>
auto consumed_by(const Member& member) {
  return std::span(member.items()).first(member.consumed());
}

/// Of the member's vectors, with what was recorded behind its last event.
template <class Item, class View>
std::vector<VectorState> vectors_of(const Segment& segment, std::span<const Item> items,
                                    const std::vector<strategies::Slot>& slots, const View& view) {
  std::vector<VectorState> vectors;
  for (const auto slot : slots) {
    const auto vector = view(slot);
    if (vector.empty()) continue;
    VectorState state{.slot = describe(slot),
                      .hash = nn::hash64(std::as_bytes(nn::HostView(segment.kernels(), vector).get())),
                      .recorded = std::nullopt};
    for (auto item = items.rbegin(); item != items.rend() && is_snapshot(*item); ++item)
      if (const auto& snapshot = std::get<experiment::SnapshotRecord>(*item); snapshot.slot == slot)
        state.recorded = snapshot.hash;
    vectors.push_back(std::move(state));
  }
  return vectors;
}

/// The last event among items; empty: none.
template <class Item>
std::string last_event(std::span<const Item> items) {
  const auto last = std::find_if_not(items.rbegin(), items.rend(), is_snapshot<Item>);
  return last == items.rend() ? std::string() : describe(std::get<0>(*last));
}

tl::unexpected<core::Error> not_reached(const std::string& waits) {
  return core::fail(core::Errc::corrupt,
                    fmt::format("the replay does not come so far: {}: records of other members are missing", waits));
}

core::Result<MemberState> worker_state(Segment& segment, std::uint32_t number) {
  auto* const worker = segment.worker(number);
  if (worker == nullptr)
    return core::fail(core::Errc::usage, fmt::format("worker {} is no member in this segment", number));
  if (!worker->at_hold()) return not_reached(worker->waits_for());
  const auto items = consumed_by(*worker);
  auto slots = experiment::state_slots(segment.spec());
  if (!worker->memory().view(strategies::kStatistics).empty()) slots.push_back(strategies::kStatistics);
  return MemberState{
      .member = fmt::format("worker {}", number),
      .events = worker->consumed(),
      .step = worker->host().steps(),
      .event = last_event(items),
      .vectors = vectors_of(segment, items, slots, [&](strategies::Slot slot) { return worker->memory().view(slot); })};
}

MemberState server_state_of(Segment& segment, std::uint32_t number) {
  auto& server = segment.server(number);
  std::vector<strategies::Slot> slots{strategies::kCenter};
  for (std::uint8_t k = 0; k < segment.spec().needs.server_states; ++k) slots.push_back(strategies::server_state(k));
  const auto items = consumed_by(server);
  return {
      .member = fmt::format("server {}", number),
      .events = server.consumed(),
      .event = last_event(items),
      .vectors = vectors_of(segment, items, slots, [&](strategies::Slot slot) { return server.memory().view(slot); })};
}

}  // namespace

core::Result<Until> parse_until(std::string_view text) {
  Until until;
  auto rest = text;
  if (const auto slash = rest.find('/'); slash != rest.npos) {
    const auto segment = number_of<int>(rest.substr(0, slash));
    if (!segment || *segment < 1) return no_place(text);
    until.segment = *segment;
    rest.remove_prefix(slash + 1);
  }
  const auto mark = rest.find_first_of(":#");
  if (mark != rest.npos) {
    until.is_event = rest[mark] == '#';
    auto who = rest.substr(0, mark);
    const bool worker = who.starts_with("worker"), server = who.starts_with("server");
    if (!worker && !server) return no_place(text);
    who.remove_prefix(std::string_view("worker").size());
    const auto member = number_of<std::uint32_t>(who);
    if (!member || (server && !until.is_event)) return no_place(text);
    until.who = worker ? Until::Who::worker : Until::Who::server;
    until.member = *member;
    rest.remove_prefix(mark + 1);
  }
  const auto value = number_of<std::uint64_t>(rest);
  if (!value || (!until.is_event && *value == 0)) return no_place(text);
  until.value = *value;
  return until;
}

std::string to_text(const Until& until) {
  const auto segment = until.segment > 0 ? fmt::format("{}/", until.segment) : std::string();
  if (until.who == Until::Who::every_worker) return fmt::format("{}{}", segment, until.value);
  return fmt::format("{}{}{}{}{}", segment, until.who == Until::Who::worker ? "worker" : "server", until.member,
                     until.is_event ? "#" : ":", until.value);
}

core::Result<bool> cut_at(Recording& recording, const Until& until) {
  const bool of_server = until.who == Until::Who::server;
  const auto members = of_server ? recording.servers.size() : recording.workers.size();
  if (until.who != Until::Who::every_worker && until.member >= members)
    return core::fail(core::Errc::usage, fmt::format("--until {}: the run has {} {}", to_text(until), members,
                                                     of_server ? "servers" : "workers"));
  bool found = false;
  if (until.who == Until::Who::every_worker) {
    found = std::ranges::any_of(recording.workers, [&](const auto& items) { return has_step(items, until.value); });
  } else if (of_server) {
    found = cut_behind_event(recording.servers[until.member], until.value);
  } else if (until.is_event) {
    found = cut_behind_event(recording.workers[until.member], until.value);
  } else {
    auto& items = recording.workers[until.member];
    found = has_step(items, until.value);
    if (found) items.resize(end_of_step(items, until.value));
  }
  if (found) recording.complete = false;
  return found;
}

core::Result<void> run_until(Segment& segment, const Until& until) {
  for (std::uint32_t w = 0; w < segment.spec().workers; ++w) {
    auto* const worker = segment.worker(w);
    if (worker == nullptr) continue;
    if (until.who == Until::Who::every_worker)
      worker->hold(end_of_step(worker->items(), until.value));
    else if (until.who == Until::Who::server || until.member != w)
      worker->hold(0);
  }
  return segment.run_held(until.who == Until::Who::server ? &segment.server(until.member) : nullptr);
}

core::Result<ReachedState> state_at(Segment& segment, const Until& until) {
  ReachedState reached{.until = until, .hashes = segment.hashes()};
  if (until.who == Until::Who::server) {
    if (!segment.server(until.member).at_end()) return not_reached(segment.server(until.member).waits_for());
    reached.members.push_back(server_state_of(segment, until.member));
    return reached;
  }
  const bool every = until.who == Until::Who::every_worker;
  for (std::uint32_t w = every ? 0 : until.member; w < (every ? segment.spec().workers : until.member + 1); ++w) {
    if (every && segment.worker(w) == nullptr) continue;
    auto state = worker_state(segment, w);
    if (!state) return tl::unexpected(std::move(state.error()));
    reached.members.push_back(std::move(*state));
  }
  if (!every) return reached;
  for (std::uint32_t s = 0; s < segment.servers(); ++s) reached.members.push_back(server_state_of(segment, s));
  reached.center_hash = nn::center_hash(segment.model());
  return reached;
}

std::string to_json(const ReachedState& state) {
  using Json = nlohmann::ordered_json;
  auto members = Json::array();
  for (const auto& member : state.members) {
    auto vectors = Json::array();
    for (const auto& vector : member.vectors)
      vectors.push_back({{"slot", vector.slot},
                         {"hash", hash_text(vector.hash)},
                         {"recorded", vector.recorded ? Json(hash_text(*vector.recorded)) : Json(nullptr)}});
    members.push_back({{"member", member.member},
                       {"events", member.events},
                       {"step", member.step ? Json(*member.step) : Json(nullptr)},
                       {"event", member.event},
                       {"vectors", vectors}});
  }
  return Json{{"run", state.run},
              {"segment", state.segment},
              {"until", to_text(state.until)},
              {"members", members},
              {"center_hash", state.center_hash.empty() ? Json(nullptr) : Json(state.center_hash)},
              {"hashes", state.hashes}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_text(const ReachedState& state) {
  std::string text;
  for (const auto& member : state.members) {
    text += fmt::format("segment {}: {} has consumed {} events{}{}{}\n", state.segment, member.member, member.events,
                        member.step ? fmt::format(", {} steps have ended", *member.step) : "",
                        member.event.empty() ? "" : "; the last one: ", member.event);
    for (const auto& vector : member.vectors)
      text +=
          fmt::format("  {:<12} {}{}\n", vector.slot, hash_text(vector.hash), vector.recorded ? ", as recorded" : "");
  }
  if (!state.center_hash.empty()) text += fmt::format("the model: {}\n", state.center_hash);
  return text + fmt::format("{} compared on the way, all as recorded\n",
                            state.hashes == 1 ? std::string("1 hash") : fmt::format("{} hashes", state.hashes));
}

}  // namespace troupe::replay
