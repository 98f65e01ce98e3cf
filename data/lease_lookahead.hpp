/// How many leases a loader asks for before it has a buffer for them. Over a link that is slow, or full of vectors, a grant takes as
/// long as several steps: without leases in stock the worker would stand still for the next one.
/// A pure state machine; times are any clock's. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "core/clock.hpp"

namespace troupe::data {

class LeaseLookahead {
 public:
  static constexpr std::size_t kMost = 64;  // leases
  /// A grant may also have waited for an epoch's end, or for others' leases to come back: more than this is no link's.
  static constexpr core::Duration kMostWait = std::chrono::seconds(1);

  void asked(std::uint32_t leases, core::Duration now);
  /// `after_pause`: training stood still meanwhile, and its time is nobody's.
  void granted(std::size_t leases, core::Duration now, bool after_pause);
  /// The worker is done with a batch. `last`: it has no other, and how long it waits for one is not its pace.
  void used(core::Duration now, bool last);

  /// Asked for, and not granted yet.
  [[nodiscard]] std::size_t pending() const noexcept { return pending_; }
  /// What a worker of this pace uses up while a grant is on its way, at most kMost.
  [[nodiscard]] std::size_t ahead() const noexcept;

 private:
  struct Request {
    std::size_t leases = 0;
    core::Duration at{0};
  };
  std::deque<Request> requests_;  // oldest first
  std::size_t pending_ = 0;
  core::Duration wait_{0};  // for a grant: the longest lately
  core::Duration pace_{0};  // from one batch to the next: a mean over the last ones
  std::optional<core::Duration> used_at_;
};

}  // namespace troupe::data
