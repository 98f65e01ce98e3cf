#include "transport/tcp/protocol/unacked.hpp"

#include <fmt/format.h>

namespace troupe::transport {

std::uint64_t UnackedFrames::add(const Outgoing& frame) {
  frames_.push_back(frame);
  return acknowledged_ + frames_.size();
}

const Outgoing& UnackedFrames::say() { return at(++said_); }

void UnackedFrames::left() { ++left_; }

core::Result<void> UnackedFrames::acknowledge(std::uint64_t count) {
  if (count < acknowledged_ || count > left_) return impossible(count);
  for (; acknowledged_ < count; ++acknowledged_) {
    if (ends_message(frames_.front().frame.type)) ++ends_acknowledged_;
    frames_.pop_front();
  }
  return {};
}

tl::unexpected<core::Error> UnackedFrames::impossible(std::uint64_t count) {
  return core::fail(core::Errc::corrupt, fmt::format("it broke the protocol: invalid count of {} frames", count));
}

void UnackedFrames::clear() noexcept { frames_.clear(); }

}  // namespace troupe::transport
