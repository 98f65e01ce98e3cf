/// The receiving side of a link: matches messages with receives and fetches payloads. Internal to shm. Thread rule: under the
/// endpoint's mutex.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/error.hpp"
#include "transport/common/matcher.hpp"
#include "transport/shm/link_state.hpp"
#include "transport/shm/memory/copy.hpp"
#include "transport/shm/outbox.hpp"

namespace troupe::transport {

/// The facts about a peer once the link is established.
struct ShmSource {
  pid_t process = 0;
  core::FileDescriptor process_end{};  // readable once the process has ended; empty when the kernel gives none
  bool readable = false;               // this process can read its memory
  std::uint64_t messages = 0;          // its credit: limit of messages that wait here
};

class ShmReceiver {
 public:
  ShmReceiver(ShmLinkState& pair, ShmOutbox& outbox) noexcept : pair_(pair), outbox_(outbox) {}

  void establish(ShmSource source) noexcept { source_ = std::move(source); }
  [[nodiscard]] const ShmSource& source() const noexcept { return source_; }

  [[nodiscard]] OperationId receive(Tag tag, MemoryView memory);
  /// False: the operation is not of this side, or is matched already.
  bool cancel(OperationId operation);

  // Frames. An error: the frame is invalid.
  [[nodiscard]] core::Result<void> take_message(const ShmFrame& frame);
  void take_cancel(const ShmHeader& header);
  [[nodiscard]] core::Result<void> take_window(const ShmFrame& frame);
  [[nodiscard]] core::Result<void> take_chunk(const ShmHeader& header);

  /// The next piece to copy into a receive. piece_copied() must follow before the next call.
  [[nodiscard]] bool has_piece() const noexcept { return !drains_.empty() || !fetches_.empty(); }
  [[nodiscard]] ShmPiece next_piece();
  /// An error: the peer's memory cannot be read, or the peer left before the message was complete.
  [[nodiscard]] core::Result<void> piece_copied(bool copied);

  /// The link is lost: completes everything outstanding, except for the transfer of the current piece, which piece_copied()
  /// completes.
  void end();

 private:
  struct Posted {
    OperationId operation;
    MemoryView memory;
  };
  /// A message that waits for its receive. `operation` holds its id, by which its sender cancels it.
  struct Arrived {
    OperationId operation;
    std::size_t size = 0;
    std::uint64_t address = 0;         // of an offer: in the sender's memory
    std::vector<std::byte> payload{};  // of a message frame
  };
  /// A matched receive that does not have all of its bytes yet.
  struct Transfer {
    OperationId operation;
    MemoryView memory;
    std::uint64_t address = 0;
    std::size_t announced = 0;  // bytes, in chunks
    std::size_t copied = 0;     // bytes
  };
  struct Chunk {
    std::uint64_t id;
    std::size_t size;
    std::size_t slot;
  };
  struct Copying {
    std::uint64_t id;
    std::size_t size;
    std::optional<std::size_t> slot{};  // none: straight from the sender's memory
  };

  void matched(Tag tag, const ShmHeader& message, std::span<const std::byte> payload, const Posted& posted);
  [[nodiscard]] bool sender_is_there() const noexcept;

  ShmLinkState& pair_;
  ShmOutbox& outbox_;
  ShmSource source_;
  std::uint64_t last_id_ = 0;
  Matcher<Posted, Arrived> matcher_;
  std::unordered_map<OperationId, Tag> waiting_;  // receives in the matcher
  std::map<std::uint64_t, Transfer> transfers_;   // by id of the message
  std::deque<std::uint64_t> fetches_;             // transfers straight from the sender's memory
  std::deque<Chunk> drains_;
  ShmWindow window_;
  std::optional<Copying> copying_;
};

}  // namespace troupe::transport
