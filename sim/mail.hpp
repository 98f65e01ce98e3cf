/// Letters between workers, one worker's side, with the rules of real runs (strategies/host/peer_graph.hpp): one letter on its way to
/// each peer or unread there. One thread.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "strategies/host/peer_graph.hpp"

namespace troupe::sim {

/// One that `reader` has, and has not read.
struct UnreadLetter {
  strategies::WorkerId reader = 0;
  strategies::Slot slot;
  double weight = 0;
};

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

  struct Letter {
    strategies::WorkerId from = 0;
    std::uint32_t life = 0;  ///< of the sender
    double weight = 0;
  };
  /// Where a letter lies until it is released.
  [[nodiscard]] strategies::Slot receive(const Letter& letter);
  [[nodiscard]] Letter release(strategies::Slot slot);
  [[nodiscard]] static bool is_inbox(strategies::Slot slot) noexcept {
    return slot.kind == strategies::SlotKind::staged && slot.index >= strategies::kFirstPeerSlot;
  }
  [[nodiscard]] const Letter& at(strategies::Slot slot) const {
    return inbox_.at(slot.index - strategies::kFirstPeerSlot).value();
  }
  /// By slot.
  [[nodiscard]] std::vector<std::pair<strategies::Slot, Letter>> unread() const;

 private:
  std::vector<strategies::WorkerId> taken_;  // few: letters are rare and soon read
  std::vector<std::optional<Letter>> inbox_;
};

}  // namespace troupe::sim
