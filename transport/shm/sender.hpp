/// The sending half of a link: accepted messages until the peer has them, and filling the window for a peer that cannot
/// read our memory. Internal to shm; under the member's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>

#include "core/error.hpp"
#include "transport/shm/memory/copy.hpp"
#include "transport/shm/outbox.hpp"
#include "transport/shm/link_state.hpp"

namespace troupe::transport {

class ShmSender {
 public:
  ShmSender(ShmPair& pair, ShmOutbox& outbox) noexcept : pair_(pair), outbox_(outbox) {}

  /// Nothing without credit.
  [[nodiscard]] std::optional<OperationId> send(Tag tag, ConstMemoryView memory);
  /// False when the operation is none of this half's.
  bool cancel(OperationId operation);

  // Frames. An error: they make no sense.
  [[nodiscard]] core::Result<void> take_pull(const ShmHeader& header);
  [[nodiscard]] core::Result<void> take_free(const ShmHeader& header);
  [[nodiscard]] core::Result<void> take_done(const ShmHeader& header);
  [[nodiscard]] core::Result<void> take_cancelled(const ShmHeader& header);

  /// A piece of a message to be put into the window. Each is followed by piece_copied() before the next.
  [[nodiscard]] bool has_piece() const noexcept { return !fills_.empty() && !window_.full(); }
  /// An error: there is no memory for the window.
  [[nodiscard]] core::Result<ShmPiece> next_piece();
  void piece_copied();

  /// The pair is lost: what is outstanding ends, but for what is being copied: that ends in piece_copied().
  void end();

 private:
  struct Send {
    OperationId operation;
    Tag tag;
    ConstMemoryView memory;
    bool offered = false;  // not in the frame
    bool pulled = false;   // through the window
    bool cancelling = false;
    std::size_t filled = 0;  // bytes, into the window
  };
  struct Filling {
    std::uint64_t id;
    std::size_t size;
    std::size_t slot;
  };
  /// Gives the credit back and forgets it.
  Send take(std::map<std::uint64_t, Send>::iterator send);

  ShmPair& pair_;
  ShmOutbox& outbox_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, Send> sends_;  // accepted and not completed
  std::unordered_map<OperationId, std::uint64_t> ids_;
  std::size_t bytes_ = 0;            // of sends_
  std::deque<std::uint64_t> fills_;  // pulled and not all filled
  std::optional<Filling> filling_;
  Descriptor window_file_;
  ShmWindow window_;
};

}  // namespace troupe::transport
