/// System calls of the shm endpoint: descriptors, abstract Unix-domain sockets, and packets with descriptors in them.
/// Internal to shm. Nothing here blocks but ShmInbox::wait. Thread rule: a socket or inbox is one thread's at a time.
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
#include "transport/shm/protocol/frame.hpp"

namespace troupe::transport {

/// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }
  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  void reset() noexcept;

 private:
  int fd_ = -1;
};

/// A frame as it came in; its payload lies in the inbox until the next receive().
struct ShmFrame {
  ShmHeader header{};
  std::span<const std::byte> payload{};
  Descriptor descriptor{};  // when one came with it
};

/// How looking into a socket ended.
enum class ShmRead : std::uint8_t {
  drained,    ///< nothing more is there now
  more,       ///< the inbox is full, look again
  closed,     ///< the peer said its last word
  malformed,  ///< the last packet was no frame
};

/// Room for the frames of one system call.
class ShmInbox {
 public:
  static constexpr std::size_t kFrames = 16;
  ShmInbox();
  ~ShmInbox();

  /// Replaces frames() with at most `limit` that wait in `socket`, also when the answer is `closed` or `malformed`.
  [[nodiscard]] ShmRead receive(int socket, std::size_t limit = kFrames);
  [[nodiscard]] std::vector<ShmFrame>& frames() noexcept { return frames_; }

 private:
  struct Slots;
  std::unique_ptr<Slots> slots_;
  std::vector<ShmFrame> frames_;
};

/// Blocks until `socket` has something to say, or returns false after `patience`.
[[nodiscard]] bool wait_readable(int socket, core::Duration patience) noexcept;

enum class ShmWrite : std::uint8_t {
  sent,
  full,  ///< the peer does not read: try again when the socket is writable
  gone,  ///< nobody will read it
};
/// Whole or not at all. `descriptor` goes along when it is not negative.
[[nodiscard]] ShmWrite send_frame(int socket, const ShmHeader& header, std::span<const std::byte> payload = {},
                                  int descriptor = -1) noexcept;

/// Errc::io when the process has no descriptor left.
[[nodiscard]] core::Result<Descriptor> shm_listen(const std::string& socket_name);
/// Errc::peer_lost when nobody listens, or somebody who does not accept; Errc::io as above.
[[nodiscard]] core::Result<Descriptor> shm_dial(const std::string& socket_name);
/// Empty: nobody waits (`error` 0), or errno in `error`.
[[nodiscard]] Descriptor shm_accept(int listener, int& error) noexcept;

/// Who made the other end of a connected socket.
struct ShmProcess {
  pid_t id = 0;  // 0: not in our process namespace
  bool same_user = false;
};
[[nodiscard]] ShmProcess process_of(int socket) noexcept;
/// Readable once that process has ended. Empty when the kernel has none to give.
[[nodiscard]] Descriptor watch_process(pid_t process) noexcept;
/// Whether the other end was closed or shut down, whatever may still wait to be read; or, for a process descriptor,
/// whether the process has ended.
[[nodiscard]] bool hung_up(int socket) noexcept;
[[nodiscard]] bool has_ended(int process_descriptor) noexcept;
/// Ends what can be said both ways, at once; frames already sent stay readable for the peer.
void hang_up(Descriptor& socket) noexcept;

}  // namespace troupe::transport
