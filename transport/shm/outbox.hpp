/// The output of a link's socket. Frames are written at once. A frame waits here if the socket is full or the link is not yet
/// established. Payloads are lent memory of the caller and are not copied; the credit bounds what waits for a peer that does not
/// read. Internal to shm. Thread rule: under the endpoint's mutex.
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

  /// Replaces the socket and shuts the former one down.
  void use(core::FileDescriptor socket) noexcept;
  /// Starts to write frames.
  void open();
  void post(const ShmHeader& header, std::span<const std::byte> payload = {}, int descriptor = -1);
  /// Writes waiting frames; call it when the socket has room again.
  void flush();
  /// Removes waiting message or offer `id`; false when it was already written.
  bool withdraw(std::uint64_t id);
  /// Sends `last_word` if possible, shuts the socket down and discards all waiting frames.
  void close(std::string_view last_word) noexcept;

 private:
  struct Waiting {
    ShmHeader header;
    std::span<const std::byte> payload;
    int descriptor;  // owned by the sender's window
  };
  bool write(const Waiting& frame) noexcept;

  core::FileDescriptor socket_;
  bool open_ = false;
  std::deque<Waiting> waiting_;
};

}  // namespace troupe::transport
