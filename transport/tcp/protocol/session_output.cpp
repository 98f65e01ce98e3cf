// The part of a session that produces frames, and repeats them after a break.
#include <algorithm>
#include <utility>

#include "transport/tcp/protocol/session.hpp"

namespace troupe::transport {
namespace {

constexpr std::size_t kBatchBytes = kChunkBytes;  // limit of small frames before a chunk is sent
constexpr std::size_t kBatchFrames = 64;

bool has_room(const std::vector<Outgoing>& batch, std::size_t bytes) {
  return batch.size() < kBatchFrames && bytes < kBatchBytes;
}

}  // namespace

core::Result<void> TcpSession::connected(const Hello& of_peer) {
  const auto resumed = unacked_.resume(of_peer.received, [this](const Outgoing& o, bool left) {
    if (o.payload == nullptr) return;
    std::size_t& written = sends_.at(o.frame.message).written;
    written = left ? written + o.frame.length : written - o.frame.length;
  });
  if (resumed && !open_) open(of_peer.window);
  return resumed;
}

void TcpSession::open(Window of_peer) {
  open_ = true;
  peer_window_ = of_peer;
  std::erase_if(keys_, [&](const auto& entry) {
    if (entry.second.kind != OperationKey::Kind::establish) return false;
    setup_.completions->push({.operation = entry.first, .peer = setup_.peer});
    return true;
  });
  announce();
}

void TcpSession::broke() {
  const Landing landed = std::exchange(landing_, {});
  if (!landed.posted) return;
  const OperationId operation = landed.posted->operation;
  keys_.emplace(operation, OperationKey{.kind = OperationKey::Kind::receive, .tag = landed.tag});
  matcher_.give_back(landed.tag, *landed.posted);
}

void TcpSession::announce() {
  while (open_ && !held_.empty() && announced_out_ < peer_window_.messages) {
    const std::uint64_t message = held_.front();
    held_.pop_front();
    Sending& s = sends_.at(message);
    const std::size_t size = s.memory.size;
    s.announced = true;
    s.eager =
        size <= kEagerBytes && eager_out_ <= peer_window_.eager_bytes && size <= peer_window_.eager_bytes - eager_out_;
    announced_out_ += 1;
    if (s.eager) eager_out_ += size;
    small_.push_back({.frame = {.type = FrameType::offer,
                                .length = s.eager ? static_cast<std::uint32_t>(size) : 0,
                                .message = message,
                                .tag = static_cast<std::uint64_t>(s.tag),
                                .size = size},
                      .payload = s.eager && size > 0 ? s.memory.data : nullptr});
  }
}

void TcpSession::take(std::vector<Outgoing>& batch) {
  std::size_t bytes = 0;
  for (; unacked_.has_more() && has_room(batch, bytes); bytes += kFrameBytes + batch.back().frame.length)
    batch.push_back(unacked_.say());
  const bool all_again = !unacked_.has_more();
  for (; all_again && !small_.empty() && has_room(batch, bytes); small_.pop_front()) {
    bytes += kFrameBytes + small_.front().frame.length;
    give(batch, small_.front());
  }
  if (all_again && !turns_.empty()) give_chunk(batch);
  for (Outgoing& o : batch) o.frame.ack = received_;
}

/// Hands out a frame for the first time.
void TcpSession::give(std::vector<Outgoing>& batch, const Outgoing& frame) {
  batch.push_back(frame);
  if (!is_numbered(frame.frame.type)) return;
  const std::uint64_t number = unacked_.add(frame);
  (void)unacked_.say();
  if (frame.frame.type != FrameType::offer && frame.frame.type != FrameType::chunk) return;
  Sending& s = sends_.at(frame.frame.message);
  s.taken = true;
  s.given += frame.frame.length;
  s.last_frame = number;
}

void TcpSession::give_chunk(std::vector<Outgoing>& batch) {
  const Tag tag = turns_.front();
  turns_.pop_front();
  auto& queue = bulk_.at(tag);
  const std::uint64_t message = queue.front();
  const Sending& s = sends_.at(message);
  const std::size_t length = std::min(kChunkBytes, s.memory.size - s.given);
  give(batch, {.frame = {.type = FrameType::chunk,
                         .length = static_cast<std::uint32_t>(length),
                         .message = message,
                         .size = s.given},
               .payload = s.memory.data + s.given});
  if (s.given == s.memory.size) queue.pop_front();
  if (queue.empty())
    bulk_.erase(tag);
  else
    turns_.push_back(tag);
}

void TcpSession::wrote(std::span<const Outgoing> frames) {
  for (const Outgoing& o : frames) {
    if (is_numbered(o.frame.type)) unacked_.left();
    if (o.payload != nullptr) sends_.at(o.frame.message).written += o.frame.length;
  }
}

void TcpSession::beat() {
  if (open_ && !has_output()) small_.push_back({.frame = {.type = FrameType::heartbeat}});
}

void TcpSession::reply(FrameType type, std::uint64_t message, std::uint64_t size) {
  if (ends_message(type)) ++ends_said_;
  small_.push_back({.frame = {.type = type, .message = message, .size = size}});
}

}  // namespace troupe::transport
