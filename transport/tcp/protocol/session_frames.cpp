// The part of a session that handles the peer's frames. Every field is checked.
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "transport/net/refusal.hpp"
#include "transport/tcp/protocol/session.hpp"

namespace troupe::transport {
namespace {

tl::unexpected<core::Error> broken(std::string what) {
  return core::fail(core::Errc::corrupt, fmt::format("it broke the protocol: {}", what));
}

std::byte* nowhere(std::size_t length, std::byte* memory) noexcept { return length == 0 ? nullptr : memory; }

}  // namespace

core::Error TcpSession::wrong_length(Tag tag, bool mine, std::size_t message, std::size_t receive) const {
  return {core::Errc::corrupt,
          fmt::format("{} from {} to {}: the message has {} bytes, the receive {}", to_string(tag),
                      mine ? setup_.self : setup_.remote, mine ? setup_.remote : setup_.self, message, receive)};
}

core::Error TcpSession::damaged(Tag tag) const {
  return {core::Errc::corrupt,
          fmt::format("{} from {} to {}: bytes were damaged on the way; the connection is given up", to_string(tag),
                      setup_.remote, setup_.self)};
}

void TcpSession::match(const Posted& posted, Tag tag, Arrived message) {
  const auto number = static_cast<std::uint64_t>(message.operation);
  keys_.erase(posted.operation);
  if (message.size != posted.memory.size) {
    end_incoming(message.size, message.eager);
    reply(FrameType::mismatch, number, posted.memory.size);
    fail(posted.operation, wrong_length(tag, false, message.size, posted.memory.size));
  } else if (message.eager) {
    if (message.size > 0) std::memcpy(posted.memory.data, message.body.data(), message.size);
    end_incoming(message.size, true);
    reply(FrameType::done, number);
    done(posted.operation, message.size);
  } else {
    incoming_.emplace(number, Incoming{.posted = posted, .tag = tag});
    reply(FrameType::want, number);
  }
}

void TcpSession::end_incoming(std::size_t size, bool eager) {
  announced_in_ -= 1;
  if (eager) eager_in_ -= size;
}

core::Result<std::byte*> TcpSession::begin(const Frame& frame) {
  if (is_numbered(frame.type) || frame.type == FrameType::heartbeat) {
    const auto before = unacked_.acknowledged();
    const auto known = unacked_.acknowledge(frame.ack);
    if (!known) return tl::unexpected(known.error());
    moved(unacked_.acknowledged() - before);
  }
  switch (frame.type) {
    case FrameType::offer: return begin_offer(frame);
    case FrameType::chunk: {
      const auto found = incoming_.find(frame.message);
      if (found == incoming_.end()) return broken("chunk for a message that was not requested");
      const Incoming& in = found->second;
      if (frame.length == 0 || frame.size != in.received || frame.length > in.posted.memory.size - in.received)
        return broken("a piece that does not follow the one before");
      return in.posted.memory.data + in.received;
    }
    case FrameType::bye: landing_.body.resize(frame.length); return nowhere(frame.length, landing_.body.data());
    case FrameType::hello:
    case FrameType::welcome:
    case FrameType::ready:
    case FrameType::refuse: return broken("a handshake frame among messages");
    default: return nullptr;
  }
}

core::Result<std::byte*> TcpSession::begin_offer(const Frame& frame) {
  const bool eager = frame.length == frame.size;
  if (!eager && frame.length != 0) return broken("an offer with part of its message");
  if (frame.message <= last_message_) return broken("messages out of order");
  const std::uint64_t unheard_ends = ends_said_ - unacked_.ends_acknowledged();
  if (announced_in_ + unheard_ends >= setup_.window.messages ||
      (eager && frame.size > setup_.window.eager_bytes - eager_in_))
    return broken("more messages than its window has room for");
  if (!eager) return nullptr;
  landing_.tag = Tag{frame.tag};
  landing_.posted = matcher_.take_receive(landing_.tag);
  if (landing_.posted) keys_.erase(landing_.posted->operation);  // matched: cancel() no longer finds it
  if (landing_.posted && landing_.posted->memory.size == frame.size)
    return nowhere(frame.length, landing_.posted->memory.data);
  landing_.body.resize(frame.length);
  return nowhere(frame.length, landing_.body.data());
}

core::Result<void> TcpSession::finish(const Frame& frame, bool intact) {
  if (intact && is_numbered(frame.type)) received_ += 1, moved(kFrameBytes);
  if (!intact) lose(core::Errc::peer_lost, "bytes from it were damaged on the way");
  if (!intact && frame.type == FrameType::offer && landing_.posted) {
    fail(std::exchange(landing_.posted, {})->operation, damaged(Tag{frame.tag}));
  } else if (!intact && frame.type == FrameType::chunk) {
    const Incoming in = incoming_.extract(frame.message).mapped();
    fail(in.posted.operation, damaged(in.tag));
  }
  if (!intact) return core::fail(core::Errc::corrupt, "bytes from it were damaged on the way");
  switch (frame.type) {
    case FrameType::offer: finish_offer(frame); return {};
    case FrameType::chunk: return finish_chunk(frame);
    case FrameType::bye: return core::fail(core::Errc::peer_lost, printable_text(landing_.body));
    case FrameType::withdraw:
      // A matched message continues; its end informs the sender.
      if (const auto message = matcher_.remove_message(Tag{frame.tag}, OperationId{frame.message})) {
        end_incoming(message->size, message->eager);
        reply(FrameType::withdrawn, frame.message);
      }
      return {};
    case FrameType::heartbeat: return {};
    default: return finish_answer(frame);
  }
}

void TcpSession::finish_offer(const Frame& frame) {
  const Tag tag{frame.tag};
  const bool eager = frame.length == frame.size;
  // Counted only now: an offer that a broken connection cut in two parts does not count.
  last_message_ = frame.message;
  announced_in_ += 1;
  if (eager) eager_in_ += frame.size;
  Arrived message{OperationId{frame.message}, frame.size, eager, {}};
  if (!eager) {
    if (const auto posted = matcher_.take_receive(tag))
      match(*posted, tag, std::move(message));
    else
      (void)matcher_.arrive(tag, std::move(message));  // waits for a receive
    return;
  }
  Landing landed = std::exchange(landing_, {});
  if (landed.posted && landed.posted->memory.size == frame.size) {
    end_incoming(frame.size, true);
    reply(FrameType::done, frame.message);
    done(landed.posted->operation, frame.size);
    return;
  }
  // A receive may have been posted while the payload came in.
  if (!landed.posted) landed.posted = matcher_.take_receive(tag);
  message.body = std::move(landed.body);
  if (landed.posted)
    match(*landed.posted, tag, std::move(message));
  else
    (void)matcher_.arrive(tag, std::move(message));
}

core::Result<void> TcpSession::finish_chunk(const Frame& frame) {
  const auto found = incoming_.find(frame.message);
  Incoming& in = found->second;
  in.received += frame.length;
  if (in.received < in.posted.memory.size) return {};
  end_incoming(in.received, false);
  reply(FrameType::done, frame.message);
  done(in.posted.operation, in.received);
  incoming_.erase(found);
  return {};
}

/// An answer to a message of this side. It returns the memory to the caller, so the connection must have read all of the memory
/// that it was going to read.
core::Result<void> TcpSession::finish_answer(const Frame& frame) {
  const auto found = sends_.find(frame.message);
  if (found == sends_.end() || !found->second.taken) return broken("an answer to a message that was not sent");
  Sending& s = found->second;
  const std::size_t size = s.memory.size;
  if (ends_message(frame.type) && unacked_.acknowledged() < s.last_frame)
    return broken("it ends a message that it does not acknowledge");
  const bool all = s.written == size;
  const bool untouched = s.eager ? all : !s.wanted;
  Completion completion{.operation = s.operation, .peer = setup_.peer};
  switch (frame.type) {
    case FrameType::want:
      if (s.eager || s.wanted) return broken("it wants a message again");
      s.wanted = true;
      if (bulk_[s.tag].empty()) turns_.push_back(s.tag);
      bulk_[s.tag].push_back(frame.message);
      return {};
    case FrameType::done:
      if (!all || !(s.eager || s.wanted)) return broken("it claims to hold what was not sent");
      traffic_.messages_sent += 1;
      traffic_.bytes_sent += size;
      completion.bytes = size;
      break;
    case FrameType::mismatch:
      if (!untouched) return broken("it refuses a message that it wanted");
      completion.outcome = Outcome::failed;
      completion.error = wrong_length(s.tag, true, size, frame.size);
      break;
    case FrameType::withdrawn:
      if (!s.withdrawing || !untouched) return broken("it returns a message that was not withdrawn");
      completion.outcome = Outcome::cancelled;
      break;
    default: return broken("an answer of no kind");
  }
  end_sending(found, std::move(completion));
  return {};
}

}  // namespace troupe::transport
