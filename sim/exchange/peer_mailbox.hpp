/// Peer messages of one worker, under the rules of real runs (strategies/host/peer_graph.hpp): at most one message per peer that is in
/// flight or unread there. One thread.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "strategies/host/peer_graph.hpp"

namespace troupe::sim {

/// A peer message that `reader` has received and not read.
struct UnreadMessage {
  strategies::WorkerId reader = 0;
  strategies::Slot slot;
  double weight = 0;
};

class PeerMailbox {
 public:
  /// False: a peer message to `to` is still in flight or unread.
  [[nodiscard]] bool take_credit(strategies::WorkerId to);
  void credit_returned(strategies::WorkerId from) { std::erase(taken_, from); }
  /// Lost peers return no credit.
  template <class Gone>
  void forget(const Gone& gone) {
    std::erase_if(taken_, gone);
  }

  struct PeerMessage {
    strategies::WorkerId from = 0;
    std::uint32_t life = 0;  ///< of the sender
    double weight = 0;
  };
  /// The slot that holds the message until release().
  [[nodiscard]] strategies::Slot receive(const PeerMessage& peer_message);
  [[nodiscard]] PeerMessage release(strategies::Slot slot);
  [[nodiscard]] const PeerMessage& at(strategies::Slot slot) const {
    return inbox_.at(slot.index - strategies::kFirstPeerSlot).value();
  }
  /// In slot order.
  [[nodiscard]] std::vector<std::pair<strategies::Slot, PeerMessage>> unread() const;

 private:
  std::vector<strategies::WorkerId> taken_;  // short: peer messages are rare and soon read
  std::vector<std::optional<PeerMessage>> inbox_;
};

}  // namespace troupe::sim
