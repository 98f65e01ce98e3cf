#include "transport/tcp/protocol/session.hpp"

#include <utility>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

/// A message above the credit's bytes is accepted only when no other payload is outstanding.
bool has_credit(const Credit& credit, std::size_t messages, std::size_t bytes, std::size_t more) noexcept {
  if (messages >= credit.messages) return false;
  return bytes == 0 || (bytes <= credit.bytes && more <= credit.bytes - bytes);
}

}  // namespace

TcpSession::TcpSession(Setup setup) : setup_(std::move(setup)) {}

OperationId TcpSession::establish() {
  const OperationId operation = setup_.completions->next_operation();
  keys_.emplace(operation, OperationKey{.kind = OperationKey::Kind::establish});
  return operation;
}

core::Result<std::optional<OperationId>> TcpSession::send(Tag tag, ConstMemoryView memory) {
  if (lost_) return tl::unexpected(*lost_);
  if (!has_credit(setup_.credit, sends_.size(), bytes_out_, memory.size)) return std::nullopt;
  const OperationId operation = setup_.completions->next_operation();
  const std::uint64_t message = next_message_++;
  sends_.emplace(message, Sending{.operation = operation, .tag = tag, .memory = memory});
  keys_.emplace(operation, OperationKey{.kind = OperationKey::Kind::send, .message = message});
  bytes_out_ += memory.size;
  held_.push_back(message);
  announce();
  return operation;
}

core::Result<OperationId> TcpSession::receive(Tag tag, MemoryView memory) {
  if (lost_) return tl::unexpected(*lost_);
  const Posted posted{setup_.completions->next_operation(), memory};
  if (auto message = matcher_.post(tag, posted))
    match(posted, tag, std::move(*message));
  else
    keys_.emplace(posted.operation, OperationKey{.kind = OperationKey::Kind::receive, .tag = tag});
  return posted.operation;
}

TcpSession::Cancelled TcpSession::cancel(OperationId operation) {
  const auto found = keys_.find(operation);
  if (found == keys_.end()) return Cancelled::unknown;
  if (lost_) return Cancelled::asked;  // its end is posted
  const OperationKey key = found->second;
  const Completion cancelled{.operation = operation, .peer = setup_.peer, .outcome = Outcome::cancelled};
  switch (key.kind) {
    case OperationKey::Kind::establish:
      keys_.erase(found);
      setup_.completions->push(cancelled);
      return Cancelled::connecting;
    case OperationKey::Kind::receive:
      if (matcher_.remove_receive(key.tag, operation)) {
        keys_.erase(found);
        setup_.completions->push(cancelled);
      }
      return Cancelled::asked;
    case OperationKey::Kind::send: break;
  }
  const auto sending = sends_.find(key.message);
  Sending& s = sending->second;
  if (!s.taken) {  // the peer has not received its offer
    std::erase(held_, key.message);
    std::erase_if(
        small_, [&](const Outgoing& o) { return o.frame.type == FrameType::offer && o.frame.message == key.message; });
    end_sending(sending, cancelled);
  } else if (!s.wanted && !s.withdrawing) {
    s.withdrawing = true;
    small_.push_back(
        {.frame = {.type = FrameType::withdraw, .message = key.message, .tag = static_cast<std::uint64_t>(s.tag)}});
  }
  return Cancelled::asked;
}

void TcpSession::end_sending(std::map<std::uint64_t, Sending>::iterator sending, Completion completion) {
  const Sending& s = sending->second;
  if (s.announced) {
    announced_out_ -= 1;
    if (s.eager) eager_out_ -= s.memory.size;
  }
  bytes_out_ -= s.memory.size;
  keys_.erase(s.operation);
  sends_.erase(sending);
  announce();
  setup_.completions->push(std::move(completion));
}

void TcpSession::done(OperationId operation, std::size_t bytes) {
  keys_.erase(operation);
  traffic_.messages_received += 1;
  traffic_.bytes_received += bytes;
  setup_.completions->push({.operation = operation, .peer = setup_.peer, .bytes = bytes});
}

void TcpSession::fail(OperationId operation, core::Error error) {
  keys_.erase(operation);
  setup_.completions->push(
      {.operation = operation, .peer = setup_.peer, .outcome = Outcome::failed, .error = std::move(error)});
}

void TcpSession::lose(core::Errc code, std::string_view why) {
  if (!lost_) lost_ = core::Error{code, fmt::format("peer {} is lost: {}", setup_.remote, why)};
}

void TcpSession::end(Outcome outcome) {
  const auto end_one = [&](OperationId operation) {
    Completion ended{.operation = operation, .peer = setup_.peer, .outcome = outcome};
    if (outcome == Outcome::failed) ended.error = *lost_;
    setup_.completions->push(std::move(ended));
  };
  for (const auto& [operation, key] : keys_)
    if (key.kind == OperationKey::Kind::establish) end_one(operation);
  for (const auto& [message, s] : std::exchange(sends_, {})) end_one(s.operation);
  for (const auto& [message, in] : std::exchange(incoming_, {})) end_one(in.posted.operation);
  if (landing_.posted) end_one(landing_.posted->operation);
  matcher_.drain([&](Tag, const Posted& p) { end_one(p.operation); }, [](Tag, const Arrived&) {});
  landing_ = {};
  keys_.clear();
  held_.clear();
  small_.clear();
  unacked_.clear();
  bulk_.clear();
  turns_.clear();
  bytes_out_ = 0;
  open_ = false;
}

}  // namespace troupe::transport
