/// The sending side of a link: holds accepted messages until the peer has them, and fills the window for a peer that cannot read
/// this process's memory. Internal to shm. Thread rule: under the endpoint's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>

#include "core/error.hpp"
#include "transport/shm/link_state.hpp"
#include "transport/shm/memory/copy.hpp"
#include "transport/shm/outbox.hpp"

namespace troupe::transport {

class ShmSender {
 public:
  ShmSender(ShmLinkState& pair, ShmOutbox& outbox) noexcept : pair_(pair), outbox_(outbox) {}

  /// No value: no credit.
  [[nodiscard]] std::optional<OperationId> send(Tag tag, ConstMemoryView memory);
  /// False: the operation is not of this side.
  bool cancel(OperationId operation);

  // Frames. An error: the frame is invalid.
  [[nodiscard]] core::Result<void> take_pull(const ShmHeader& header);
  [[nodiscard]] core::Result<void> take_free(const ShmHeader& header);
  [[nodiscard]] core::Result<void> take_done(const ShmHeader& header);
  [[nodiscard]] core::Result<void> take_cancelled(const ShmHeader& header);

  /// The next piece to copy into the window. piece_copied() must follow before the next call.
  [[nodiscard]] bool has_piece() const noexcept { return !fills_.empty() && !window_.full(); }
  /// An error: there is no memory for the window.
  [[nodiscard]] core::Result<ShmPiece> next_piece();
  void piece_copied();

  /// The link is lost: completes everything outstanding, except for the send of the current piece, which piece_copied() completes.
  void end();

 private:
  struct Send {
    OperationId operation;
    Tag tag;
    ConstMemoryView memory;
    bool offered = false;  // sent as an offer, not in the frame
    bool pulled = false;   // through the window
    bool cancelling = false;
    std::size_t filled = 0;  // bytes, into the window
  };
  struct Filling {
    std::uint64_t id;
    std::size_t size;
    std::size_t slot;
  };
  /// Removes the send and returns its credit.
  Send take(std::map<std::uint64_t, Send>::iterator send);

  ShmLinkState& pair_;
  ShmOutbox& outbox_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, Send> sends_;  // accepted and not completed
  std::unordered_map<OperationId, std::uint64_t> ids_;
  std::size_t bytes_ = 0;            // of sends_
  std::deque<std::uint64_t> fills_;  // pulled, not yet filled completely
  std::optional<Filling> filling_;
  core::FileDescriptor window_file_;
  ShmWindow window_;
};

}  // namespace troupe::transport
