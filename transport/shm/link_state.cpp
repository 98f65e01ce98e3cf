#include "transport/shm/link_state.hpp"

#include <fmt/format.h>

namespace troupe::transport {

ShmIntroduction ShmSelf::introduction_for(const ShmAddress& peer) const noexcept {
  return {.secret_of_receiver = peer.secret,
          .id_of_sender = address.id,
          .secret_of_sender = address.secret,
          .messages = credit.messages,
          .probe_address = reinterpret_cast<std::uintptr_t>(&probe),
          .probe_value = probe};
}

void ShmLinkState::sent(OperationId operation, std::size_t bytes) {
  traffic.messages_sent += 1;
  traffic.bytes_sent += bytes;
  self.completions->push({.operation = operation, .peer = peer, .bytes = bytes});
}

void ShmLinkState::received(OperationId operation, std::size_t bytes) {
  traffic.messages_received += 1;
  traffic.bytes_received += bytes;
  self.completions->push({.operation = operation, .peer = peer, .bytes = bytes});
}

void ShmLinkState::cancelled(OperationId operation) {
  self.completions->push({.operation = operation, .peer = peer, .outcome = Outcome::cancelled});
}

void ShmLinkState::mismatched(OperationId operation, const std::string& tag, std::size_t message, std::size_t receive) {
  self.completions->push(
      {.operation = operation,
       .peer = peer,
       .outcome = Outcome::failed,
       .error = {core::Errc::corrupt, fmt::format("{} between {} and {}: the message has {} bytes, the receive {}", tag,
                                                  self.address.label(), remote.label(), message, receive)}});
}

void ShmLinkState::ended(OperationId operation) {
  Completion completion{.operation = operation, .peer = peer, .outcome = ending};
  if (ending == Outcome::failed) completion.error = why;
  self.completions->push(std::move(completion));
}

}  // namespace troupe::transport
