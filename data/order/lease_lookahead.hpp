/// How many leases a loader requests. Over a slow or busy link a grant takes as long as several steps; without leases in stock the
/// worker would stand still until the next grant. A pause, as Ctrl-C makes one, lasts until all granted leases are computed: of slow
/// steps few are requested ahead. A pure state machine; times may come from any clock. Not thread-safe.
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
  /// A grant may also wait for an epoch's end or for leases of other workers. A longer wait than this is not caused by the link.
  static constexpr core::Duration kMostWait = std::chrono::seconds(1);

  /// How long granted leases may keep a worker busy, besides the time that a grant and a batch take.
  static constexpr core::Duration kMostStock = std::chrono::seconds(1);

  void asked(std::uint32_t leases, core::Duration now);
  /// `after_pause`: training was paused meanwhile, so the time does not count.
  void granted(std::size_t leases, core::Duration now, bool after_pause);
  /// The worker has finished a batch. `last`: it has no other, so its wait for the next does not count as its pace.
  void used(core::Duration now, bool last);
  /// A batch was ready so long after its making had begun.
  void made(core::Duration took);

  /// Leases requested and not granted yet.
  [[nodiscard]] std::size_t pending() const noexcept { return pending_; }
  /// The leases that a worker of this pace uses during the wait for a grant, at most kMost.
  [[nodiscard]] std::size_t ahead() const noexcept;
  /// The most leases that a loader of so many buffers may hold, that in computation included, or have requested: at least two.
  [[nodiscard]] std::size_t most(std::size_t buffers) const noexcept;

 private:
  struct Request {
    std::size_t leases = 0;
    core::Duration at{0};
  };
  std::deque<Request> requests_;  // oldest first
  std::size_t pending_ = 0;
  core::Duration wait_{0};    // for a grant: the longest of the latest ones
  core::Duration making_{0};  // of a batch: the longest of the latest ones
  core::Duration pace_{0};    // from one batch to the next: a mean over the latest ones
  std::optional<core::Duration> used_at_;
};

}  // namespace troupe::data
