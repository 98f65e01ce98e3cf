/// The processes that this one is connected to, each by the node that it says it is, and what has been said to and fro: whom it may speak
/// to, what it has been asked, which of its actors are known here. Connections to one node share it: CAF may use either of two.
///
/// A node belongs to the certificate that it came with first: nobody else can say that it is that node as long as it is connected. Without
/// TLS there is no certificate, and nobody but this host.
///
/// Thread-safe; what a claim leads to is CAF's I/O thread's.
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

/// One node elsewhere.
struct WirePeer {
  /// Of its actors; each is a proxy here as long as it lives.
  static constexpr std::size_t kMostActors = 4096;
  /// That it waits for the answers to: what it does not read lies here.
  static constexpr std::size_t kMostRequests = 1024;
  /// Of one actor: CAF watches one once, and again when it has forgotten it.
  static constexpr std::uint32_t kMostWatches = 64;

  std::set<caf::actor_id> introduced;                          // who is here and may be spoken to
  std::set<std::pair<caf::actor_id, std::uint64_t>> expected;  // answers: who has asked, and the number of the request
  std::set<caf::actor_id> actors;                              // of its own that are known here
  std::map<caf::actor_id, std::uint32_t> watched;  // how often it has watched whom; who has spoken to it may be
  std::size_t requests = 0;                        // of it, without answers so far
};

class WirePeers {
 public:
  /// `own`: this node, as a message has it.
  explicit WirePeers(std::string own) : own_(std::move(own)) {}

  [[nodiscard]] const std::string& own() const noexcept { return own_; }
  /// Whoever is let in may speak to it.
  void publish(caf::actor_id actor);
  [[nodiscard]] bool is_published(caf::actor_id actor);
  /// A connection's: the node is that certificate's until the last claim of it has gone. Null: it is another's, or this process itself.
  [[nodiscard]] std::shared_ptr<WirePeer> claim(const std::string& node, const std::string& certificate);

 private:
  struct Known {
    std::string certificate;
    std::weak_ptr<WirePeer> peer;
  };
  const std::string own_;
  std::mutex mutex_;
  std::map<std::string, Known> known_;
  std::set<caf::actor_id> published_;
};

}  // namespace troupe::actors
