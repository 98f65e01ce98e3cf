/// The numbered frames that one side of a session has handed out and the peer has not acknowledged. They are kept so that a new
/// connection continues where the old one broke. Payload is not copied: it stays in the sender's memory, which is lent until the
/// message ends, and no message ends before all its frames are acknowledged.
///
/// A frame is first said (handed to the connection), then left (the connection has read it for the last time), then acknowledged.
/// Bounded by both windows: an end makes room for a message, and that message acknowledges the end. Thread rule: that of its
/// session. Cost: O(1) per frame, O(n) to resume with n frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "core/error.hpp"
#include "transport/tcp/protocol/frame.hpp"

namespace troupe::transport {

/// A frame to write. `payload` (frame.length bytes) is lent memory or null; TcpConnection fills in its hash.
struct Outgoing {
  Frame frame;
  const std::byte* payload = nullptr;
};

class UnackedFrames {
 public:
  /// Adds the newest frame, not said yet. Returns its number.
  std::uint64_t add(const Outgoing& frame);
  [[nodiscard]] bool has_more() const noexcept { return said_ < acknowledged_ + frames_.size(); }
  /// Returns the next frame to send and counts it as said.
  [[nodiscard]] const Outgoing& say();
  /// The oldest frame that was said and has not left has now left.
  void left();

  /// The peer holds the first `count` frames. Errc::corrupt: fewer than before, or more than have left.
  [[nodiscard]] core::Result<void> acknowledge(std::uint64_t count);
  /// A new connection: the peer holds `count` frames, and all later ones will be sent again. `change(frame, left)` is called for
  /// frames that turn out to have left (true) and for frames that must leave once more (false). Errc::corrupt: fewer than before,
  /// or more than were said.
  template <class Change>
  [[nodiscard]] core::Result<void> resume(std::uint64_t count, Change change) {
    if (count < acknowledged_ || count > said_) return impossible(count);
    for (; left_ < count; ++left_) change(at(left_ + 1), true);
    for (; left_ > count; --left_) change(at(left_), false);
    said_ = count;
    return acknowledge(count);
  }

  [[nodiscard]] std::uint64_t acknowledged() const noexcept { return acknowledged_; }
  /// How many of the acknowledged frames ended a message.
  [[nodiscard]] std::uint64_t ends_acknowledged() const noexcept { return ends_acknowledged_; }
  void clear() noexcept;

 private:
  [[nodiscard]] const Outgoing& at(std::uint64_t number) const { return frames_[number - acknowledged_ - 1]; }
  [[nodiscard]] static tl::unexpected<core::Error> impossible(std::uint64_t count);

  std::deque<Outgoing> frames_;  // from number acknowledged_ + 1
  std::uint64_t acknowledged_ = 0;
  std::uint64_t left_ = 0;
  std::uint64_t said_ = 0;
  std::uint64_t ends_acknowledged_ = 0;
};

}  // namespace troupe::transport
