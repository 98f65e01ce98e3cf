/// Members of a group in one thread. Their endpoints, of any kind, share one completion queue; each member has its own operation queue.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/buffer.hpp"
#include "core/clock.hpp"
#include "tests/transport/endpoint_contract.hpp"
#include "transport/exchange/arenas.hpp"
#include "transport/exchange/collectives/collective.hpp"

namespace troupe::exchange::testing {

class ConnectedGroup {
 public:
  /// Connects all members, or fails the test.
  ConnectedGroup(const transport::testing::EndpointKind& kind, std::size_t ranks, transport::Credit credit = {});
  ~ConnectedGroup();

  [[nodiscard]] std::size_t size() const { return members_.size(); }
  [[nodiscard]] Group group(std::size_t rank) const;
  [[nodiscard]] OperationQueue& operations(std::size_t rank) { return *members_[rank].operations; }
  [[nodiscard]] transport::Endpoint& endpoint(std::size_t rank) { return *members_[rank].endpoint; }
  [[nodiscard]] std::uint64_t bytes_sent(std::size_t rank) const;
  [[nodiscard]] bool maps_memory() const { return members_.front().arenas != nullptr; }
  [[nodiscard]] Arenas& arenas(std::size_t rank) { return *members_[rank].arenas; }

  /// One vector per rank, with numbers that round when summed. It is in the rank's arenas where the endpoint maps memory.
  [[nodiscard]] std::vector<core::Buffer> vectors(std::size_t floats);

  /// Makes and starts a collective for `rank` over its part of `vectors`. ended() returns its result.
  std::size_t start(std::size_t rank, CollectiveTask task, std::vector<core::Buffer>& vectors);
  std::size_t start(std::size_t rank, Group group, CollectiveTask task, std::vector<core::Buffer>& vectors);
  void cancel(std::size_t which) { runs_[which].collective->cancel(); }
  [[nodiscard]] const std::optional<core::Result<void>>& ended(std::size_t which) const { return runs_[which].ended; }

  /// Delivers completions until `done` holds; fails the test after a long time.
  void drive(const std::function<bool()>& done);
  /// Delivers completions until every started collective has ended.
  void finish();
  /// Delivers the completions that are already there.
  void poll();

 private:
  struct Member {
    std::shared_ptr<transport::Endpoint> endpoint;
    std::shared_ptr<Arenas> arenas;  // none: the endpoint maps no memory
    std::unique_ptr<OperationQueue> operations;
    std::vector<transport::Peer> peers;
  };
  struct Run {
    std::unique_ptr<Collective> collective;
    std::optional<core::Result<void>> ended{};
  };
  void deliver(const std::vector<transport::Completion>& completions);

  core::SteadyClock clock_;
  std::shared_ptr<transport::CompletionQueue> queue_;
  std::vector<Member> members_;
  std::vector<transport::OperationId> establishing_;
  std::deque<Run> runs_;
};

}  // namespace troupe::exchange::testing
