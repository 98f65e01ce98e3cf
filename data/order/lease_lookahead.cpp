#include "data/order/lease_lookahead.hpp"

#include <algorithm>

namespace troupe::data {
namespace {

constexpr int kLately = 8;  // number of latest grants, and of batches

}  // namespace

void LeaseLookahead::asked(std::uint32_t leases, core::Duration now) {
  requests_.push_back({leases, now});
  pending_ += leases;
}

void LeaseLookahead::granted(std::size_t leases, core::Duration now, bool after_pause) {
  if (after_pause) used_at_.reset();
  while (leases > 0 && !requests_.empty()) {
    auto& oldest = requests_.front();
    if (!after_pause) wait_ = std::max(std::min(now - oldest.at, kMostWait), wait_ - wait_ / kLately);
    const auto answered = std::min(leases, oldest.leases);
    leases -= answered;
    pending_ -= answered;
    oldest.leases -= answered;
    if (oldest.leases == 0) requests_.pop_front();
  }
}

void LeaseLookahead::used(core::Duration now, bool last) {
  if (used_at_) pace_ += (now - *used_at_ - pace_) / (pace_.count() == 0 ? 1 : kLately);
  used_at_ = last ? std::nullopt : std::optional(now);
}

void LeaseLookahead::made(core::Duration took) { making_ = std::max(took, making_ - making_ / kLately); }

/// More than what covers the making of a batch: making is never the slower for it, however many batches are made at once.
std::size_t LeaseLookahead::most(std::size_t buffers) const noexcept {
  constexpr std::size_t kLeast = 2;
  if (pace_.count() <= 0) return std::min(buffers, kLeast);
  const auto steps = static_cast<std::size_t>((kMostStock + wait_ + making_ + pace_ - core::Duration{1}) / pace_);
  return std::min(buffers + ahead(), std::max(1 + steps, kLeast));
}

std::size_t LeaseLookahead::ahead() const noexcept {
  return pace_.count() <= 0 ? 0 : std::min(static_cast<std::size_t>(wait_ / pace_), kMost);
}

}  // namespace troupe::data
