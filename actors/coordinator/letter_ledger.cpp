#include "actors/coordinator/letter_ledger.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace troupe::actors {

namespace {

/// N shares of 1/N are 1 up to N · 2⁻⁵².
constexpr double kRoundedShares = 1e-10;

std::uint64_t count_of(const std::vector<LetterCount>& counts, strategies::WorkerId peer) {
  const auto found = std::ranges::find(counts, peer, &LetterCount::peer);
  return found == counts.end() ? 0 : found->letters;
}

}  // namespace

void LetterLedger::lost(WorkerId worker) {
  said_.erase(worker);
  any_lost_ = true;
}

void LetterLedger::parted(WorkerId one, WorkerId other) { parted_.insert(std::minmax(one, other)); }

bool LetterLedger::reach_each_other(WorkerId one, WorkerId other) const {
  return !parted_.contains(std::minmax(one, other));
}

std::vector<LetterCount> LetterLedger::expected_by(WorkerId reader) const {
  std::vector<LetterCount> expected;
  for (const auto& [writer, letters] : said_) {
    const auto sent = count_of(letters.sent, reader);
    if (sent > 0 && reach_each_other(writer, reader)) expected.push_back({writer, sent});
  }
  return expected;
}

std::optional<std::pair<LetterLedger::WorkerId, LetterLedger::WorkerId>> LetterLedger::under_way() const {
  for (const auto& [writer, letters] : said_) {
    for (const auto& sent : letters.sent) {
      const auto reader = said_.find(sent.peer);
      if (reader == said_.end() || !reach_each_other(writer, sent.peer)) continue;
      if (count_of(reader->second.received, writer) != sent.letters) return std::pair(writer, sent.peer);
    }
  }
  return {};
}

std::uint64_t LetterLedger::arrived() const {
  std::uint64_t sum = 0;
  for (const auto& [worker, letters] : said_)
    for (const auto& received : letters.received) sum += received.letters;
  return sum;
}

double LetterLedger::weight() const {
  double sum = 0;
  for (const auto& [worker, letters] : said_) {
    sum += letters.weight;
    for (const auto& letter : letters.unread) sum += letter.weight;
  }
  return sum;
}

core::Result<void> LetterLedger::balance() {
  const double tolerance = sum_ ? 0 : kRoundedShares;
  const double sum = weight();
  const double before = std::exchange(sum_, sum).value_or(1);
  const bool may_shrink = std::exchange(any_lost_, false) || !parted_.empty();
  if (std::abs(sum - before) <= tolerance || (may_shrink && sum < before)) return {};
  return core::fail(core::Errc::internal,
                    fmt::format("the workers' shares of the model, and those of the letters between them, add up to "
                                "{:.17g}; before they were {:.17g}",
                                sum, before));
}

}  // namespace troupe::actors
