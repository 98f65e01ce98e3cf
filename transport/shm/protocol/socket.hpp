/// System calls of the shm endpoint: descriptors, abstract Unix-domain sockets, and packets with descriptors in them. Internal to
/// shm. Only wait_readable() blocks. Thread rule: one thread at a time uses a socket or inbox.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/file_descriptor.hpp"
#include "transport/shm/protocol/frame.hpp"

namespace troupe::transport {

/// A received frame; its payload is in the inbox until the next receive().
struct ShmFrame {
  ShmHeader header{};
  std::span<const std::byte> payload{};
  core::FileDescriptor descriptor{};  // empty when none came with the frame
};

/// The result of reading a socket.
enum class ShmRead : std::uint8_t {
  drained,    ///< no packet waits
  more,       ///< the inbox is full, read again
  closed,     ///< the peer closed the socket
  malformed,  ///< the last packet was not a frame
};

/// Buffers for the frames of one system call.
class ShmInbox {
 public:
  static constexpr std::size_t kFrames = 16;
  ShmInbox();
  ~ShmInbox();

  /// Replaces frames() with at most `limit` frames that wait in `socket`, also when the result is `closed` or `malformed`.
  [[nodiscard]] ShmRead receive(int socket, std::size_t limit = kFrames);
  [[nodiscard]] std::vector<ShmFrame>& frames() noexcept { return frames_; }

 private:
  struct Slots;
  std::unique_ptr<Slots> slots_;
  std::vector<ShmFrame> frames_;
};

/// Blocks until `socket` is readable, or returns false after `patience`.
[[nodiscard]] bool wait_readable(int socket, core::Duration patience) noexcept;

enum class ShmWrite : std::uint8_t {
  sent,
  full,  ///< the peer does not read: try again when the socket is writable
  gone,  ///< the peer will not read it
};
/// Sends the whole frame or nothing. A `descriptor` that is not negative is sent with it.
[[nodiscard]] ShmWrite send_frame(int socket, const ShmHeader& header, std::span<const std::byte> payload = {},
                                  int descriptor = -1) noexcept;

/// Errc::io: the process has no descriptor left.
[[nodiscard]] core::Result<core::FileDescriptor> shm_listen(const std::string& socket_name);
/// Errc::peer_lost: no process listens, or the listener does not accept. Errc::io as above.
[[nodiscard]] core::Result<core::FileDescriptor> shm_dial(const std::string& socket_name);
/// Empty: no connection waits (`error` is 0), or it failed (`error` is errno).
[[nodiscard]] core::FileDescriptor shm_accept(int listener, int& error) noexcept;

/// The process that made the other end of a connected socket.
struct ShmProcess {
  pid_t id = 0;  // 0: not in our process namespace
  bool same_user = false;
};
[[nodiscard]] ShmProcess process_of(int socket) noexcept;
/// A descriptor that is readable once the process has ended. Empty when the kernel gives none.
[[nodiscard]] core::FileDescriptor watch_process(pid_t process) noexcept;
/// hung_up(): the other end was closed or shut down, even if data still waits to be read. has_ended(): the process of this
/// descriptor has ended.
[[nodiscard]] bool hung_up(int socket) noexcept;
[[nodiscard]] bool has_ended(int process_descriptor) noexcept;
/// Shuts both directions down at once and closes the socket. The peer can still read frames sent before.
void hang_up(core::FileDescriptor& socket) noexcept;

}  // namespace troupe::transport
