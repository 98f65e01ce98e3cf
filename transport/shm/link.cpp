#include "transport/shm/link.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

/// The peer's text for an error message: cut to 500 bytes, and without characters that a terminal would interpret.
std::string printable(std::span<const std::byte> text) {
  std::string out(reinterpret_cast<const char*>(text.data()), std::min<std::size_t>(text.size(), 500));
  std::ranges::replace_if(
      out, [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

}  // namespace

ShmLink::ShmLink(const ShmSelf& self, Peer peer, ShmAddress remote)
    : pair_{.self = self, .peer = peer, .remote = std::move(remote)},
      establishing_(self.completions->next_operation()),
      sender_(pair_, outbox_),
      receiver_(pair_, outbox_) {}

void ShmLink::accept(core::FileDescriptor socket, const ShmIntroduction& introduction) {
  outbox_.use(std::move(socket));
  const ShmIntroduction mine = pair_.self.introduction_for(pair_.remote);
  (void)send_frame(outbox_.socket(), {.kind = ShmFrameKind::welcome}, std::as_bytes(std::span(&mine, 1)));
  establish(introduction);
}

void ShmLink::establish(const ShmIntroduction& introduction) {
  const pid_t process = process_of(outbox_.socket()).id;
  receiver_.establish({.process = process,
                       .process_end = watch_process(process),
                       .readable = pair_.self.reads_peers && can_read(process, introduction),
                       .messages = introduction.messages});
  state_ = State::established;
  pair_.self.completions->push({.operation = establishing_, .peer = pair_.peer});
  outbox_.open();
}

core::Result<void> ShmLink::take_welcome(const ShmFrame& frame) {
  ShmIntroduction introduction;
  if (frame.payload.size() != sizeof introduction) return core::fail(core::Errc::corrupt, "invalid welcome");
  std::memcpy(&introduction, frame.payload.data(), sizeof introduction);
  if (introduction.id_of_sender != pair_.remote.id ||
      !same_secret(introduction.secret_of_sender, pair_.remote.secret) ||
      !same_secret(introduction.secret_of_receiver, pair_.self.address.secret))
    return core::fail(core::Errc::corrupt, "peer identity mismatch");
  establish(introduction);
  return {};
}

core::Result<void> ShmLink::take(const ShmFrame& frame) {
  using enum ShmFrameKind;
  const ShmHeader& header = frame.header;
  if (state_ == State::connecting) {
    if (header.kind == welcome) return take_welcome(frame);
    return core::fail(core::Errc::corrupt, "it does not say welcome");
  }
  switch (header.kind) {
    case message:
    case offer: return receiver_.take_message(frame);
    case cancel: receiver_.take_cancel(header); return {};
    case bounce: return receiver_.take_window(frame);
    case chunk: return receiver_.take_chunk(header);
    case pull: return sender_.take_pull(header);
    case free: return sender_.take_free(header);
    case done: return sender_.take_done(header);
    case cancelled: return sender_.take_cancelled(header);
    case bye: return core::fail(core::Errc::peer_lost, printable(frame.payload));
    default: break;
  }
  return core::fail(core::Errc::corrupt,
                    fmt::format("it sent a frame of kind {}", static_cast<std::uint32_t>(header.kind)));
}

bool ShmLink::cancel(OperationId operation) {
  if (state_ == State::connecting && operation == establishing_) {
    pair_.cancelled(operation);
    state_ = State::established;  // so that end() does not complete `establishing_` again
    end(Outcome::failed, "connecting was cancelled", {});
    return true;
  }
  return sender_.cancel(operation) || receiver_.cancel(operation);
}

void ShmLink::end(Outcome outcome, std::string_view why, std::string_view last_word) {
  if (state_ == State::lost) return;
  pair_.lost = true;
  pair_.ending = outcome;
  pair_.why = {core::Errc::peer_lost, fmt::format("peer {} is lost: {}", pair_.remote.label(), why)};
  outbox_.close(last_word);
  if (std::exchange(state_, State::lost) == State::connecting) pair_.ended(establishing_);
  receiver_.end();
  sender_.end();
}

core::Result<ShmPiece> ShmLink::next_piece() {
  receiver_copies_ = receiver_.has_piece();
  if (receiver_copies_) return receiver_.next_piece();
  return sender_.next_piece();
}

core::Result<void> ShmLink::piece_copied(bool copied) {
  if (receiver_copies_) return receiver_.piece_copied(copied);
  sender_.piece_copied();
  return {};
}

}  // namespace troupe::transport
