/// Letters between workers, one worker's side, with the rules of real runs: one letter on its way to each peer or unread there, and
/// slots for unread letters that no strategy names. One thread.
#pragma once

#include <optional>
#include <vector>

#include "strategies/host/types.hpp"

namespace troupe::sim {

class Postbox {
 public:
  /// False: a letter to `to` is still on its way or unread.
  [[nodiscard]] bool take_credit(strategies::WorkerId to);
  void credit_returned(strategies::WorkerId from) { std::erase(taken_, from); }
  /// Peers that are gone return no credit.
  template <class Gone>
  void forget(const Gone& gone) {
    std::erase_if(taken_, gone);
  }

  /// A place for a letter that is to come; false when every slot has one or waits for one.
  [[nodiscard]] bool expect() noexcept { return expected_ < kInboxes && ++expected_ > 0; }

  struct Letter {
    strategies::WorkerId from = 0;
    std::uint32_t life = 0;  ///< of the sender
    double weight = 0;
  };
  /// Where an expected letter lies until it is released.
  [[nodiscard]] strategies::Slot receive(const Letter& letter);
  [[nodiscard]] Letter release(strategies::Slot slot);
  [[nodiscard]] static bool is_inbox(strategies::Slot slot) noexcept {
    return slot.kind == strategies::SlotKind::staged && slot.index >= kFirstInbox;
  }
  [[nodiscard]] const Letter& at(strategies::Slot slot) const { return inbox_.at(slot.index - kFirstInbox).value(); }
  [[nodiscard]] const std::vector<std::optional<Letter>>& inbox() const noexcept { return inbox_; }

 private:
  static constexpr std::uint8_t kFirstInbox = 64;  // staged slots from here on are the port's
  static constexpr std::uint32_t kInboxes = 256 - kFirstInbox;
  std::vector<strategies::WorkerId> taken_;  // few: letters are rare and soon read
  std::vector<std::optional<Letter>> inbox_;
  std::uint32_t expected_ = 0;
};

}  // namespace troupe::sim
