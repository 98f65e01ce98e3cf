/// The state that a link's sender and receiver share: the two ends, and how operations complete. Internal to shm. Thread rule:
/// under the endpoint's mutex.
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

/// The part that all links of one endpoint share.
struct ShmSelf {
  ShmAddress address;
  std::shared_ptr<CompletionQueue> completions;
  Credit credit;
  bool reads_peers = true;  // try to read peers' memory
  std::uint64_t probe = 0;  // introductions of this endpoint point to it

  [[nodiscard]] ShmIntroduction introduction_for(const ShmAddress& peer) const noexcept;
};

struct ShmLinkState {
  const ShmSelf& self;
  const Peer peer;
  const ShmAddress remote;
  Traffic traffic{};
  std::uint64_t pieces = 0;  // pieces of messages copied so far
  bool lost = false;
  Outcome ending = Outcome::failed;  // outcome of outstanding operations when the link is lost
  core::Error why{};                 // set when lost

  void sent(OperationId operation, std::size_t bytes);
  void received(OperationId operation, std::size_t bytes);
  void cancelled(OperationId operation);
  /// Completes an operation whose message and receive have different lengths.
  void mismatched(OperationId operation, const std::string& tag, std::size_t message, std::size_t receive);
  /// Completes an operation that the loss ends.
  void ended(OperationId operation);
};

}  // namespace troupe::transport
