/// The writing end of a link's socket. Frames go out at once; what the socket does not take, or what is posted before the
/// link is established, waits here. Payloads are the caller's memory, lent with the operation: nothing is copied, so
/// what waits for a peer that does not read is bounded by the credit. Internal to shm; under the member's mutex.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string_view>

#include "transport/shm/protocol/socket.hpp"

namespace troupe::transport {

class ShmOutbox {
 public:
  [[nodiscard]] int socket() const noexcept { return socket_.get(); }
  [[nodiscard]] bool waits_for_room() const noexcept { return open_ && !waiting_.empty(); }

  /// Replaces the socket; the one before is hung up.
  void use(Descriptor socket) noexcept;
  /// From now on frames go out.
  void open();
  void post(const ShmHeader& header, std::span<const std::byte> payload = {}, int descriptor = -1);
  /// The socket has room again.
  void flush();
  /// Takes back message or offer `id`; false when it has gone out.
  bool withdraw(std::uint64_t id);
  /// Says `last_word` if that is possible, and hangs up. Nothing waits any more.
  void close(std::string_view last_word) noexcept;

 private:
  struct Waiting {
    ShmHeader header;
    std::span<const std::byte> payload;
    int descriptor;  // its owner is the sender's window
  };
  bool write(const Waiting& frame) noexcept;

  Descriptor socket_;
  bool open_ = false;
  std::deque<Waiting> waiting_;
};

}  // namespace troupe::transport
