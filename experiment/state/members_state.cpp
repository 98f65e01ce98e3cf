#include <algorithm>
#include <bit>
#include <charconv>
#include <functional>
#include <iterator>

#include <fmt/format.h>

#include "experiment/state/start_state.hpp"
#include "nn/layout.hpp"
#include "nn/optimizer.hpp"
#include "strategies/host/state_text.hpp"

namespace troupe::experiment {

using strategies::Slot;

namespace {

constexpr auto kMembership = "membership";
std::string worker_name(std::uint32_t worker) { return fmt::format("worker.{}", worker); }
/// Only where there is something to say: files of runs without it are as those of older versions.
std::string steps_name(std::uint32_t worker) { return fmt::format("worker.{}.steps", worker); }
std::string server_name(std::uint32_t server) { return fmt::format("server.{}", server); }

/// Exact text: the values must come back bit for bit, and they are few.
std::string to_text(const std::vector<float>& values) {
  std::string text;
  for (const float value : values)
    fmt::format_to(std::back_inserter(text), "{:08x}", std::bit_cast<std::uint32_t>(value));
  return text;
}

bool to_floats(const std::string& text, std::vector<float>& values) {
  if (text.size() % 8 != 0) return false;
  for (std::size_t at = 0; at < text.size(); at += 8) {
    std::uint32_t bits = 0;
    const auto* end = text.data() + at + 8;
    const auto [stop, error] = std::from_chars(text.data() + at, end, bits, 16);
    if (error != std::errc{} || stop != end) return false;
    values.push_back(std::bit_cast<float>(bits));
  }
  return true;
}

CanonicalVector find(const Checkpoint& checkpoint, const std::string& prefix) {
  const auto found = checkpoint.vectors.find(prefix);
  return found == checkpoint.vectors.end() ? nullptr : found->second;
}

core::Result<std::string> member(const Checkpoint& checkpoint, const std::string& name) {
  const auto found = checkpoint.members.find(name);
  if (found == checkpoint.members.end())
    return core::fail(core::Errc::corrupt, fmt::format("the start state says nothing of {}", name));
  return found->second;
}

core::Result<WorkerStart> worker_start(const RunSpec& spec, const Checkpoint& checkpoint, std::uint32_t worker) {
  const auto text = member(checkpoint, worker_name(worker));
  if (!text) return tl::unexpected(text.error());
  WorkerStart start;
  std::string statistics;
  std::string peer_messages;
  if (auto read = strategies::read_state(
          *text, {{"host", &start.state}, {"statistics", &statistics}, {"letters", &peer_messages}});
      !read)
    return tl::unexpected(read.error());
  if (!to_floats(statistics, start.statistics))
    return core::fail(core::Errc::corrupt, worker_name(worker) + ": its statistics are no numbers");
  if (const auto steps = checkpoint.members.find(steps_name(worker)); steps != checkpoint.members.end())
    if (auto read = strategies::read_state(steps->second, {{"replica", &start.steps}}); !read)
      return tl::unexpected(read.error());
  if (const auto own = checkpoint.own_states.find(worker); own != checkpoint.own_states.end())
    start.own_state = own->second;
  for (const Slot slot : state_slots(spec)) {
    auto vector = find(checkpoint, worker_slot_prefix(worker, slot));
    if (!vector) return core::fail(core::Errc::corrupt, worker_name(worker) + ": a vector is missing");
    start.slots.emplace(slot, std::move(vector));
  }
  for (std::size_t begin = 0; begin < peer_messages.size();) {
    const auto end = std::min(peer_messages.find('\n', begin), peer_messages.size());
    std::uint64_t from = 0;
    WorkerStart::UnreadMessage peer_message;
    if (auto read = strategies::read_state(peer_messages.substr(begin, end - begin),
                                           {{"from", &from}, {"weight", &peer_message.weight}});
        !read)
      return tl::unexpected(read.error());
    peer_message.from = static_cast<strategies::WorkerId>(from);
    peer_message.vector = find(checkpoint, peer_message_prefix(worker, peer_message.from));
    if (!peer_message.vector)
      return core::fail(core::Errc::corrupt, worker_name(worker) + ": a peer message is missing");
    start.peer_messages.push_back(std::move(peer_message));
    begin = end + 1;
  }
  return start;
}

/// Without a record (a run without losses, or an older program) all workers are members.
core::Result<strategies::Membership> membership_of(const RunSpec& spec, const Checkpoint& checkpoint) {
  strategies::Membership membership;
  const auto found = checkpoint.members.find(kMembership);
  if (found == checkpoint.members.end()) {
    for (strategies::WorkerId w = 0; w < spec.workers; ++w) membership.workers.push_back(w);
    return membership;
  }
  if (auto read =
          strategies::read_state(found->second, {{"epoch", &membership.epoch}, {"workers", &membership.workers}});
      !read)
    return tl::unexpected(read.error());
  const auto& workers = membership.workers;
  const bool ascending = std::ranges::adjacent_find(workers, std::greater_equal()) == workers.end();
  if (workers.empty() || !ascending || workers.back() >= spec.workers)
    return core::fail(core::Errc::corrupt, "the start state's members are none of the run's");
  return membership;
}

}  // namespace

std::vector<Slot> state_slots(const RunSpec& spec) {
  std::vector<Slot> slots{strategies::kParams};
  for (int k = 0; k < core::state_slots(nn::optimizer_kind(spec.settings->train)); ++k)
    slots.push_back(optimizer_state(k));
  slots.insert(slots.end(), spec.needs.worker_slots.begin(), spec.needs.worker_slots.end());
  return slots;
}

void put(Checkpoint& checkpoint, std::uint32_t worker, const WorkerStart& start) {
  std::string peer_messages;
  for (const auto& peer_message : start.peer_messages) {
    peer_messages +=
        strategies::write_state({{"from", std::uint64_t{peer_message.from}}, {"weight", peer_message.weight}}) + '\n';
    checkpoint.vectors[peer_message_prefix(worker, peer_message.from)] = peer_message.vector;
  }
  for (const auto& [slot, vector] : start.slots) checkpoint.vectors[worker_slot_prefix(worker, slot)] = vector;
  checkpoint.members[worker_name(worker)] = strategies::write_state(
      {{"host", start.state}, {"statistics", to_text(start.statistics)}, {"letters", peer_messages}});
  if (start.own_state) checkpoint.own_states[worker] = start.own_state;
  if (start.steps != 0) checkpoint.members[steps_name(worker)] = strategies::write_state({{"replica", start.steps}});
}

void put(Checkpoint& checkpoint, std::uint32_t server, const ServerStart& start) {
  checkpoint.members[server_name(server)] =
      strategies::write_state({{"half", start.state}, {"version", start.version}});
}

void put(Checkpoint& checkpoint, const strategies::Membership& membership) {
  checkpoint.members[kMembership] =
      strategies::write_state({{"epoch", membership.epoch}, {"workers", membership.workers}});
}

core::Result<StartState> members_state(const RunSpec& spec, const Checkpoint& checkpoint) {
  StartState start{.parameters = find(checkpoint, ""),
                   .statistics = nullptr,
                   .optimizer_states = std::vector<std::vector<CanonicalVector>>(spec.workers),
                   .first_steps = std::vector<strategies::Step>(spec.workers, 0),
                   .optimizer_steps = std::vector<std::uint64_t>(spec.workers, 0),
                   .server_states = {},
                   .center_version = 0,
                   .notes = {},
                   .workers = {},
                   .servers = {},
                   .membership = {}};
  auto membership = membership_of(spec, checkpoint);
  if (!membership) return tl::unexpected(membership.error());
  start.membership = std::move(*membership);
  for (const auto worker : start.membership.workers) {
    auto one = worker_start(spec, checkpoint, worker);
    if (!one) return tl::unexpected(one.error());
    start.workers.emplace(worker, std::move(*one));
  }
  for (std::uint32_t server = 0; server < spec.servers; ++server) {
    const auto text = member(checkpoint, server_name(server));
    if (!text) return tl::unexpected(text.error());
    ServerStart one;
    if (auto read = strategies::read_state(*text, {{"half", &one.state}, {"version", &one.version}}); !read)
      return tl::unexpected(read.error());
    start.servers.push_back(std::move(one));
  }
  for (int k = 0; k < spec.needs.server_states; ++k)
    start.server_states.push_back(find(checkpoint, server_state_prefix(k)));
  return start;
}

}  // namespace troupe::experiment
