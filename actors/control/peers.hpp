/// The processes that this one is connected to, by claimed node id, with the state of each: the actors that it may send to, the open
/// requests, and its actors that are known here. Two connections to one node share this state, because CAF may use either.
///
/// A node id belongs to the certificate that claims it first, as long as that node is connected. Without TLS there is no certificate;
/// then all peers are on this host.
///
/// Thread-safe, except the ControlPeer that claim() returns: CAF's I/O thread only.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include <caf/all.hpp>

namespace troupe::actors {

/// One other node.
struct ControlPeer {
  /// Most actors of the peer that may be known here; each costs a proxy here while it lives.
  static constexpr std::size_t kMostActors = 4096;
  /// Most unanswered requests of the peer; answers that it does not read stay in memory here.
  static constexpr std::size_t kMostRequests = 1024;
  /// Most monitor messages for one actor. CAF sends one, and another after it has dropped its proxy.
  static constexpr std::uint32_t kMostWatches = 64;

  std::set<caf::actor_id> introduced;                          // local actors that the peer may send to
  std::set<std::pair<caf::actor_id, std::uint64_t>> expected;  // awaited answers: asking actor, number of the request
  std::set<caf::actor_id> actors;                              // the peer's actors that are known here
  std::map<caf::actor_id, std::uint32_t> watched;  // monitor messages by local actor; senders to the peer are allowed
  std::size_t requests = 0;                        // of the peer, not yet answered
};

class ControlPeers {
 public:
  /// `own`: this node's id in its form on the wire.
  explicit ControlPeers(std::string own) : own_(std::move(own)) {}

  [[nodiscard]] const std::string& own() const noexcept { return own_; }
  /// Every accepted peer may send to a published actor.
  void publish(caf::actor_id actor);
  [[nodiscard]] bool is_published(caf::actor_id actor);
  /// Called for each connection. The node id belongs to `certificate` until the last claim's pointer is released. Null: the id belongs to
  /// another certificate, is empty, or is this process itself.
  [[nodiscard]] std::shared_ptr<ControlPeer> claim(const std::string& node, const std::string& certificate);

 private:
  struct Known {
    std::string certificate;
    std::weak_ptr<ControlPeer> peer;
  };
  const std::string own_;
  std::mutex mutex_;
  std::map<std::string, Known> known_;
  std::set<caf::actor_id> published_;
};

}  // namespace troupe::actors
