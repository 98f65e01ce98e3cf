/// What both halves of a link know: who talks to whom, and how operations end. Internal to shm; under the member's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/error.hpp"
#include "transport/endpoint.hpp"
#include "transport/shm/protocol/address.hpp"
#include "transport/shm/protocol/frame.hpp"

namespace troupe::transport {

/// What the links of one endpoint have in common.
struct ShmSelf {
  ShmAddress address;
  std::shared_ptr<CompletionQueue> completions;
  Credit credit;
  bool reads_peers = true;  // try to reach into their memory
  std::uint64_t probe = 0;  // what introductions of this endpoint point at

  [[nodiscard]] ShmIntroduction introduction_for(const ShmAddress& peer) const noexcept;
};

struct ShmPair {
  const ShmSelf& self;
  const Peer peer;
  const ShmAddress remote;
  Traffic traffic{};
  std::uint64_t pieces = 0;  // of messages, that have been copied
  bool lost = false;
  Outcome ending = Outcome::failed;  // of what is outstanding when the link is lost
  core::Error why{};                 // then

  void sent(OperationId operation, std::size_t bytes);
  void received(OperationId operation, std::size_t bytes);
  void cancelled(OperationId operation);
  /// The message has another length than the receive.
  void mismatched(OperationId operation, const std::string& tag, std::size_t message, std::size_t receive);
  /// By the loss.
  void ended(OperationId operation);
};

}  // namespace troupe::transport
