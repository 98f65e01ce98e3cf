#include "actors/protocol/member_message_checks.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "core/journal.hpp"
#include "strategies/host/accounts.hpp"
#include "strategies/host/journal_codec.hpp"

namespace troupe::actors {

namespace {

/// Upper limit of a count: no run reaches it, and sums stay far below 2^64.
constexpr std::uint64_t kMostCount = std::uint64_t{1} << 52;
constexpr double kMostSeconds = 1e10;

Refusal check_unread(const std::vector<PeerMessage>& peer_messages, const std::vector<strategies::Slot>& slots,
                     std::size_t workers) {
  if (peer_messages.size() != slots.size()) return std::string("peer messages without slots");
  for (const auto& peer_message : peer_messages)
    if (peer_message.from >= workers || !(peer_message.weight >= 0 && peer_message.weight <= kMostWeight))
      return fmt::format("a peer message of worker {} that weighs {}", peer_message.from, peer_message.weight);
  return {};
}

bool is_time(double seconds) { return std::isfinite(seconds) && std::abs(seconds) <= kMostSeconds; }

}  // namespace

void SiteNodes::set(std::uint32_t site, const caf::node_id& node) {
  const std::lock_guard lock(mutex_);
  nodes_[site] = node;
}

bool SiteNodes::has(std::uint32_t site, const caf::node_id& node) const {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(site);
  return found != nodes_.end() && found->second == node;
}

void MemberMessageChecks::site_replaced(std::uint32_t site, const caf::node_id& node) {
  if (facts_.nodes) facts_.nodes->set(site, node);
  for (std::uint32_t w = 0; w < facts_.worker_sites.size(); ++w)
    if (facts_.worker_sites[w] == site) accounts_.erase(w);
}

bool MemberMessageChecks::may_send_for_site(const Sender& sender, std::uint32_t site) const {
  return sender.here || (facts_.nodes && facts_.nodes->has(site, sender.node));
}

bool MemberMessageChecks::may_send_for_worker(const Sender& sender, std::uint32_t worker) const {
  return worker < facts_.worker_sites.size() && may_send_for_site(sender, facts_.worker_sites[worker]);
}

bool MemberMessageChecks::may_send_for_server(const Sender& sender, std::uint32_t shard) const {
  return shard < facts_.server_sites.size() && may_send_for_site(sender, facts_.server_sites[shard]);
}

std::vector<std::uint32_t> MemberMessageChecks::workers_of(const Sender& sender) const {
  std::vector<std::uint32_t> workers;
  for (std::uint32_t w = 0; w < facts_.worker_sites.size(); ++w)
    if (may_send_for_worker(sender, w)) workers.push_back(w);
  return workers;
}

Refusal MemberMessageChecks::check(const Sender& sender, const LeaseRequest& request, std::uint64_t wanted) const {
  if (sender.here) return {};
  if (!may_send_for_worker(sender, request.worker)) return fmt::format("worker {} is at another site", request.worker);
  if (request.count + wanted > facts_.most_leases)
    return fmt::format("worker {} wants {} leases at a time", request.worker, request.count + wanted);
  return {};
}

/// The rows ascend, name members that there are, and make up the bytes.
bool MemberMessageChecks::is_traffic(const WorkerProgress& p) const {
  using experiment::Purpose;
  const auto after = [](const experiment::Traffic& a, const experiment::Traffic& b) {
    return std::pair(a.purpose, a.member) >= std::pair(b.purpose, b.member);
  };
  const auto known = [this](const experiment::Traffic& row) {
    if (row.purpose > experiment::kLastPurpose || row.bytes > kMostCount) return false;
    const auto members = row.purpose == Purpose::peer         ? facts_.workers
                         : row.purpose == Purpose::collective ? std::uint32_t{1}
                                                              : facts_.servers;
    return row.member < members;
  };
  return std::ranges::adjacent_find(p.traffic, after) == p.traffic.end() && std::ranges::all_of(p.traffic, known) &&
         (p.traffic.empty() || experiment::total_bytes(p.traffic) == p.bytes);
}

Refusal MemberMessageChecks::check(const Sender& sender, const WorkerProgress& p, core::Duration now) {
  if (sender.here) return {};
  if (!may_send_for_worker(sender, p.worker)) return fmt::format("worker {} is at another site", p.worker);
  auto& account = accounts_[p.worker];
  const auto finished = p.done.size() + p.given_up.size();
  if (p.steps > account.granted || p.steps < account.steps || finished > account.granted - account.done)
    return fmt::format("worker {} says {} steps and {} leases done, after {} steps with {} leases", p.worker, p.steps,
                       account.done + finished, account.steps, account.granted);
  if (p.samples > account.granted * facts_.most_samples)
    return fmt::format("worker {} has seen {} samples with {} leases", p.worker, p.samples, account.granted);
  for (const auto count : {p.recent_samples, p.exchanges, p.dropped, p.skipped, p.passed, p.refused, p.replaced,
                           p.bytes, p.staleness_sum, p.staleness_count, p.staleness_max})
    if (count > kMostCount) return fmt::format("invalid count {}", count);
  if (p.recent_samples > p.samples || p.top1 < -1 || p.top1 > static_cast<std::int64_t>(p.recent_samples))
    return fmt::format("invalid sample counts: {} of {} of {}", p.top1, p.recent_samples, p.samples);
  if (!std::isfinite(p.loss) || !std::isfinite(p.loss_sum)) return std::string("a loss that is no number");
  if (p.recent_steps > p.steps ||
      !std::ranges::all_of(std::initializer_list<double>{p.norm_sum, p.norm_max, p.recent_norm_sum, p.loss_scale},
                           [](double norm) { return std::isfinite(norm) && norm >= 0; }))
    return std::string("an invalid norm of gradients, or loss scale");
  if (!std::ranges::all_of(std::initializer_list<double>{p.compute_s, p.forward_s, p.backward_s, p.optimizer_s,
                                                         p.exchange_s, p.wait_s, p.load_s},
                           is_time) ||
      !std::ranges::all_of(p.waits, is_time))
    return std::string("invalid times");
  const auto bins = strategies::StalenessHistogram{}.counts().size();
  if ((!p.staleness.empty() && p.staleness.size() != bins) ||
      (!p.waits.empty() && p.waits.size() != facts_.workers + facts_.servers) ||
      !std::ranges::all_of(p.staleness, [](std::uint64_t count) { return count <= kMostCount; }))
    return std::string("lists that are too long, or too short");
  if (!is_traffic(p)) return std::string("bytes that are not those of its exchanges");
  if (p.distance != experiment::kUnknown && !(std::isfinite(p.distance) && p.distance >= 0))
    return fmt::format("invalid distance {}", p.distance);
  const bool has_news = p.steps > account.steps || finished > 0;
  account.steps = p.steps;
  account.done += finished;
  if (!has_news && !account.repeats.take(now)) return std::string("it says the same again and again");
  return {};
}

bool MemberMessageChecks::may_have(std::uint32_t worker, std::uint64_t steps) const {
  const auto account = accounts_.find(worker);
  return steps <= (account == accounts_.end() ? 0 : account->second.granted);
}

Refusal MemberMessageChecks::check(const MemberState& state, std::size_t workers) {
  return check_unread(state.peer_messages, state.peer_message_slots, workers);
}

Refusal MemberMessageChecks::check(const PeerMessageCounts& peer_messages, std::size_t workers) {
  if (!(peer_messages.weight >= 0 && peer_messages.weight <= kMostWeight))
    return fmt::format("invalid weight {}", peer_messages.weight);
  for (const auto* counts : {&peer_messages.sent, &peer_messages.received})
    for (const auto& count : *counts)
      if (count.peer >= workers || count.peer_messages > kMostCount)
        return fmt::format("{} peer messages to or from worker {}", count.peer_messages, count.peer);
  return check_unread(peer_messages.unread, peer_messages.slots, workers);
}

Refusal MemberMessageChecks::check(const Sender& sender, const RunError& run_error) const {
  if (!may_send_for_site(sender, run_error.site)) return fmt::format("site {} is not there", run_error.site);
  if (run_error.code < core::Errc{} || run_error.code > core::kLastErrc) return std::string("unknown error code");
  return {};
}

Refusal MemberMessageChecks::check(const Sender& sender, const SiteLost& lost) const {
  if (sender.here) return {};
  if (!may_send_for_site(sender, lost.site)) return fmt::format("site {} is not there", lost.site);
  const bool known = lost.lost == 0 || std::ranges::find(facts_.worker_sites, lost.lost) != facts_.worker_sites.end();
  if (!known || lost.lost == lost.site) return fmt::format("site {} cannot lose site {}", lost.site, lost.lost);
  return {};
}

Refusal MemberMessageChecks::check(const Sender& sender, const TransferNews& news) const {
  if (sender.here) return {};
  const bool its_own = std::ranges::any_of(news.sites, [&](auto site) { return may_send_for_site(sender, site); });
  const auto known = [&](std::uint32_t site) {
    return site == 0 || std::ranges::find(facts_.worker_sites, site) != facts_.worker_sites.end() ||
           std::ranges::find(facts_.server_sites, site) != facts_.server_sites.end();
  };
  if (!its_own || !std::ranges::all_of(news.sites, known)) return std::string("sites that are not there have moved");
  return {};
}

Refusal MemberMessageChecks::check(const Sender& sender, const Note& note, core::Duration now) {
  if (sender.here) return {};
  const auto its_own = [&](std::uint32_t site) { return may_send_for_site(sender, site); };
  if (!std::ranges::any_of(facts_.worker_sites, its_own) && !std::ranges::any_of(facts_.server_sites, its_own))
    return std::string("a note that belongs to no member");
  if (note.level > Note::Level::warning) return std::string("unknown note level");
  if (note.of_program) {
    // Twice as much as the process keeps to: lines may arrive closer together than they were sent.
    const auto programs = 2 * static_cast<double>(std::max<std::size_t>(workers_of(sender).size(), 1));
    const TokenBucket fresh(programs * kProgramLinesAtOnce, programs * kProgramLinesPerSecond);
    return lines_.try_emplace(sender.node, fresh).first->second.take(now)
               ? Refusal{}
               : Refusal("more lines of programs than they may print");
  }
  auto& notes = notes_.try_emplace(sender.node, TokenBucket(kNotesAtOnce, kNotesPerSecond)).first->second;
  return notes.take(now) ? Refusal{}
                         : fmt::format("more than {} notes at once, or {} a second", kNotesAtOnce, kNotesPerSecond);
}

Refusal MemberMessageChecks::check_record(const Sender& sender, const core::JournalRecord& record) const {
  const auto refused = [](const std::string& why) { return Refusal(why); };
  if (strategies::is_worker_event(record.kind)) {
    const auto event = strategies::decode_worker_event(record);
    if (!event) return refused(event.error().message);
    return may_send_for_worker(sender, event->worker) ? Refusal{} : refused("a worker of another process");
  }
  if (strategies::is_server_event(record.kind)) {
    const auto event = strategies::decode_server_event(record);
    if (!event) return refused(event.error().message);
    return may_send_for_server(sender, event->shard) ? Refusal{} : refused("a server of another process");
  }
  const auto snapshot = experiment::decode_snapshot(record);
  if (!snapshot) return refused("a record that is not a member's");
  const bool its_own =
      snapshot->server ? may_send_for_server(sender, snapshot->member) : may_send_for_worker(sender, snapshot->member);
  return its_own ? Refusal{} : refused("a member of another process");
}

Refusal MemberMessageChecks::check(const Sender& sender, const JournalRecords& records) const {
  if (sender.here) return {};
  if (records.kinds.size() != records.sizes.size()) return std::string("journal records that do not add up");
  auto rest = std::as_bytes(std::span(records.bytes));
  for (std::size_t k = 0; k < records.kinds.size(); ++k) {
    if (records.sizes[k] > rest.size()) return std::string("journal records that do not add up");
    const auto payload = rest.first(records.sizes[k]);
    rest = rest.subspan(records.sizes[k]);
    if (auto refusal = check_record(sender, {records.kinds[k], {payload.begin(), payload.end()}}))
      return "a journal record: " + *refusal;
  }
  return rest.empty() ? Refusal{} : Refusal("journal records that do not add up");
}

}  // namespace troupe::actors
