#include "actors/coordinator/peer_message_ledger.hpp"

#include <algorithm>
#include <cmath>

#include "strategies/host/weights.hpp"

namespace troupe::actors {

namespace {

std::uint64_t count_of(const std::vector<PeerMessageCount>& counts, strategies::WorkerId peer) {
  const auto found = std::ranges::find(counts, peer, &PeerMessageCount::peer);
  return found == counts.end() ? 0 : found->peer_messages;
}

}  // namespace

void PeerMessageLedger::lost(WorkerId worker) {
  said_.erase(worker);
  any_lost_ = true;
}

void PeerMessageLedger::disconnected(WorkerId one, WorkerId other) { disconnected_.insert(std::minmax(one, other)); }

bool PeerMessageLedger::reach_each_other(WorkerId one, WorkerId other) const {
  return !disconnected_.contains(std::minmax(one, other));
}

std::vector<PeerMessageCount> PeerMessageLedger::expected_by(WorkerId reader) const {
  std::vector<PeerMessageCount> expected;
  for (const auto& [writer, peer_messages] : said_) {
    const auto sent = count_of(peer_messages.sent, reader);
    if (sent > 0 && reach_each_other(writer, reader)) expected.push_back({writer, sent});
  }
  return expected;
}

std::optional<std::pair<PeerMessageLedger::WorkerId, PeerMessageLedger::WorkerId>> PeerMessageLedger::under_way()
    const {
  for (const auto& [writer, peer_messages] : said_) {
    for (const auto& sent : peer_messages.sent) {
      const auto reader = said_.find(sent.peer);
      if (reader == said_.end() || !reach_each_other(writer, sent.peer)) continue;
      if (count_of(reader->second.received, writer) != sent.peer_messages) return std::pair(writer, sent.peer);
    }
  }
  return {};
}

std::uint64_t PeerMessageLedger::arrived() const {
  std::uint64_t sum = 0;
  for (const auto& [worker, peer_messages] : said_)
    for (const auto& received : peer_messages.received) sum += received.peer_messages;
  return sum;
}

double PeerMessageLedger::weight() const {
  double sum = 0;
  for (const auto& [worker, peer_messages] : said_) {
    sum += peer_messages.weight;
    for (const auto& peer_message : peer_messages.unread) sum += peer_message.weight;
  }
  return sum;
}

core::Result<void> PeerMessageLedger::balance() {
  const double tolerance = sum_ ? 0 : strategies::kRoundedShares;
  const double sum = weight();
  const double before = std::exchange(sum_, sum).value_or(1);
  const bool may_shrink = std::exchange(any_lost_, false) || !disconnected_.empty();
  if (std::abs(sum - before) <= tolerance || (may_shrink && sum < before)) return {};
  return core::fail(core::Errc::internal, strategies::wrong_sum_of_shares(sum, before));
}

}  // namespace troupe::actors
