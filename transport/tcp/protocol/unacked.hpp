/// What one side of a session has said and the other has not acknowledged: the numbered frames, kept until they are, so
/// that a new connection goes on where the old one broke. Payload is not copied: it stays in the sender's memory, which
/// is on loan until the message has ended, and no message ends before all its frames are acknowledged.
///
/// A frame is said (handed to the connection), then left (read for the last time by it), then acknowledged. Bounded by
/// both windows: an end makes room for a message, and that message acknowledges the end.
/// Thread rule: that of its session. Cost: O(1) per frame, O(n) for what is said again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "core/error.hpp"
#include "transport/tcp/protocol/frame.hpp"

namespace troupe::transport {

/// A frame to be written. `payload` (frame.length bytes) is lent memory, or nothing; its hash is the pump's to fill in.
struct Outgoing {
  Frame frame;
  const std::byte* payload = nullptr;
};

class UnackedFrames {
 public:
  /// The newest, not said yet. Returns its number.
  std::uint64_t add(const Outgoing& frame);
  [[nodiscard]] bool has_more() const noexcept { return said_ < acknowledged_ + frames_.size(); }
  /// The next one to say.
  [[nodiscard]] const Outgoing& say();
  /// The oldest that was said has left.
  void left();

  /// The peer holds the first `count`. Errc::corrupt: that is less than it had, or more than has left.
  [[nodiscard]] core::Result<void> acknowledge(std::uint64_t count);
  /// The connection is another, and the peer holds `count`: all after it is to be said again. `change(frame, left)` hears
  /// of those that have left after all, and of those that will have to once more. Errc::corrupt: as acknowledge().
  template <class Change>
  [[nodiscard]] core::Result<void> resume(std::uint64_t count, Change change) {
    if (count < acknowledged_ || count > said_) return impossible(count);
    for (; left_ < count; ++left_) change(at(left_ + 1), true);
    for (; left_ > count; --left_) change(at(left_), false);
    said_ = count;
    return acknowledge(count);
  }

  [[nodiscard]] std::uint64_t acknowledged() const noexcept { return acknowledged_; }
  /// Of those, how many were the end of a message.
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
