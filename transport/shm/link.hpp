/// One peer of an shm endpoint: the protocol of transport/shm/protocol/frame.hpp over one socket. Internal to shm. Thread rule:
/// under the endpoint's mutex; only copy_piece() of the piece from next_piece() runs without it.
///
/// A link is connecting until both sides have called connect(), then established, then lost. Operations posted before it is
/// established wait in the outbox. The socket is shut down before any memory is returned to its owner; ShmReceiver relies on that.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "transport/endpoint.hpp"
#include "transport/shm/link_state.hpp"
#include "transport/shm/outbox.hpp"
#include "transport/shm/receiver.hpp"
#include "transport/shm/sender.hpp"

namespace troupe::transport {

class ShmLink {
 public:
  enum class State : std::uint8_t { connecting, established, lost };

  ShmLink(const ShmSelf& self, Peer peer, ShmAddress remote);

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] const ShmAddress& remote() const noexcept { return pair_.remote; }
  [[nodiscard]] Connection connection() const noexcept { return {pair_.peer, establishing_}; }
  [[nodiscard]] const core::Error& lost() const noexcept { return pair_.why; }
  [[nodiscard]] const Traffic& traffic() const noexcept { return pair_.traffic; }
  [[nodiscard]] std::uint64_t progress() const noexcept { return pair_.traffic.sum() + pair_.pieces; }
  [[nodiscard]] int socket() const noexcept { return outbox_.socket(); }
  [[nodiscard]] int process_end() const noexcept { return receiver_.source().process_end.get(); }
  [[nodiscard]] bool waits_for_room() const noexcept { return outbox_.waits_for_room(); }

  /// This side has connected: a welcome or an end follows on `socket`.
  void dialled(core::FileDescriptor socket) noexcept { outbox_.use(std::move(socket)); }
  /// The peer has connected and introduced itself: sends the welcome and establishes the link.
  void accept(core::FileDescriptor socket, const ShmIntroduction& introduction);

  [[nodiscard]] std::optional<OperationId> send(Tag tag, ConstMemoryView memory) { return sender_.send(tag, memory); }
  [[nodiscard]] OperationId receive(Tag tag, MemoryView memory) { return receiver_.receive(tag, memory); }
  /// False when the operation is not this link's or can no longer be cancelled.
  bool cancel(OperationId operation);

  /// An error is the reason to end the link: an invalid frame, or the peer's bye.
  [[nodiscard]] core::Result<void> take(const ShmFrame& frame);
  void flush() { outbox_.flush(); }
  /// Completes everything outstanding, as `outcome` or with "peer … is lost: why". The peer receives `last_word`.
  void end(Outcome outcome, std::string_view why, std::string_view last_word);

  [[nodiscard]] bool has_piece() const noexcept { return receiver_.has_piece() || sender_.has_piece(); }
  [[nodiscard]] core::Result<ShmPiece> next_piece();
  [[nodiscard]] core::Result<void> piece_copied(bool copied);

 private:
  void establish(const ShmIntroduction& introduction);
  [[nodiscard]] core::Result<void> take_welcome(const ShmFrame& frame);

  ShmLinkState pair_;
  State state_ = State::connecting;
  const OperationId establishing_;
  ShmOutbox outbox_;
  ShmSender sender_;
  ShmReceiver receiver_;
  bool receiver_copies_ = false;  // whether the current piece is the receiver's
};

}  // namespace troupe::transport
