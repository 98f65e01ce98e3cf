/// Frames of the guest protocol (docs/formats/guest.md) over a Unix stream socket. Thread rule: one thread at a time. What comes from the
/// other side is not trusted: lengths and types are checked before memory is made for them.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/file_descriptor.hpp"

namespace troupe::guest {

inline constexpr std::uint32_t kProtocol = 1;
inline constexpr std::size_t kMostPayload = std::size_t{16} << 20;

enum class FrameType : std::uint16_t {
  hello = 1,
  plan,
  ready,
  done,
  bucket,
  stepped,
  evaluated,
  state,
  synced,
  failed,
  waits,
  loaded,
  welcome = 101,
  step,
  optimize,
  evaluate,
  save,
  load,
  sync,
  changed,
  last,
  end,
};
[[nodiscard]] std::string_view name_of(
    FrameType type) noexcept;  ///< "HELLO"; "a frame of an unknown type" for any other

struct Frame {
  FrameType type{};
  std::vector<std::byte> payload;
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(payload.data()), payload.size()};
  }
};

class Frames {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  /// `socket` is connected. Its mode becomes non-blocking: every call waits until its deadline at most. `watch`: readable once the guest has
  /// ended, for a child of the guest's may hold the connection open; -1: nothing is. It is the caller's.
  explicit Frames(core::FileDescriptor socket, int watch = -1);

  /// Errc::timeout: the other side did not take it. Errc::io: the connection is closed.
  [[nodiscard]] core::Result<void> send(FrameType type, std::span<const std::byte> payload,
                                        std::span<const int> descriptors, Deadline deadline);
  [[nodiscard]] core::Result<void> send(FrameType type, std::string_view text, Deadline deadline) {
    return send(type, std::as_bytes(std::span(text)), {}, deadline);
  }
  /// The next frame that a guest sends. Errc::timeout: no whole frame came; the next call continues with its rest. Errc::io: the connection is
  /// closed. Errc::data: not the protocol.
  [[nodiscard]] core::Result<Frame> receive(Deadline deadline);

  [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

 private:
  [[nodiscard]] core::Result<void> wait(short events, Deadline deadline, std::string_view what) const;
  /// Receives the rest of `into`, of which `filled` bytes are there.
  [[nodiscard]] core::Result<void> fill(std::span<std::byte> into, std::size_t& filled, Deadline deadline);

  core::FileDescriptor socket_;
  int watch_;
  std::array<std::byte, 8> head_{};  // of the frame that is being received,
  std::size_t of_head_ = 0;          // how many bytes of it there are,
  std::vector<std::byte> payload_;
  std::size_t of_payload_ = 0;
};

}  // namespace troupe::guest
