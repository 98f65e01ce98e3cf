/// The receiving half of a link: matches messages with receives, and fetches payloads. Internal to shm; under the member's
/// mutex.
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
#include "transport/shm/memory/copy.hpp"
#include "transport/shm/outbox.hpp"
#include "transport/shm/link_state.hpp"

namespace troupe::transport {

/// What is known of a peer once the link is established.
struct ShmSource {
  pid_t process = 0;
  Descriptor process_end{};    // readable once the process has ended; empty when the kernel gives none
  bool readable = false;       // its memory, by us
  std::uint64_t messages = 0;  // its credit: what may wait here
};

class ShmReceiver {
 public:
  ShmReceiver(ShmPair& pair, ShmOutbox& outbox) noexcept : pair_(pair), outbox_(outbox) {}

  void establish(ShmSource source) noexcept { source_ = std::move(source); }
  [[nodiscard]] const ShmSource& source() const noexcept { return source_; }

  [[nodiscard]] OperationId receive(Tag tag, MemoryView memory);
  /// False when the operation is none of this half's, or has its message.
  bool cancel(OperationId operation);

  // Frames. An error: they make no sense.
  [[nodiscard]] core::Result<void> take_message(const ShmFrame& frame);
  void take_cancel(const ShmHeader& header);
  [[nodiscard]] core::Result<void> take_window(const ShmFrame& frame);
  [[nodiscard]] core::Result<void> take_chunk(const ShmHeader& header);

  /// A piece of a message to be copied to where it was asked for. Each is followed by piece_copied() before the next.
  [[nodiscard]] bool has_piece() const noexcept { return !drains_.empty() || !fetches_.empty(); }
  [[nodiscard]] ShmPiece next_piece();
  /// An error: the peer's memory cannot be read any more.
  [[nodiscard]] core::Result<void> piece_copied(bool copied);

  /// The pair is lost: what is outstanding ends, but for what is being copied: that ends in piece_copied().
  void end();

 private:
  struct Posted {
    OperationId operation;
    MemoryView memory;
  };
  /// A message that waits for its receive. Its `operation` is its id: that is how its sender cancels it.
  struct Arrived {
    OperationId operation;
    std::size_t size = 0;
    std::uint64_t address = 0;         // of an offer, in the sender's memory
    std::vector<std::byte> payload{};  // of any other
  };
  /// A receive that has its message and not yet all of its bytes.
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

  ShmPair& pair_;
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
