/// Members of a group in one thread: endpoints of any kind that share a completion queue, a courier each, and what drives them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/buffer.hpp"
#include "core/clock.hpp"
#include "transport/exchange/arenas.hpp"
#include "transport/exchange/collectives/collective.hpp"
#include "tests/transport/endpoint_contract.hpp"

namespace troupe::exchange::testing {

class Company {
 public:
  /// Connected, or a test failure.
  Company(const transport::testing::EndpointKind& kind, std::size_t ranks, transport::Credit credit = {});
  ~Company();

  [[nodiscard]] std::size_t size() const { return members_.size(); }
  [[nodiscard]] Group group(std::size_t rank) const;
  [[nodiscard]] Courier& courier(std::size_t rank) { return *members_[rank].courier; }
  [[nodiscard]] transport::Endpoint& endpoint(std::size_t rank) { return *members_[rank].endpoint; }
  [[nodiscard]] std::uint64_t bytes_sent(std::size_t rank) const;
  [[nodiscard]] bool maps_memory() const { return members_.front().arenas != nullptr; }
  [[nodiscard]] Arenas& arenas(std::size_t rank) { return *members_[rank].arenas; }

  /// A vector of its own for every rank, of numbers that round when they are summed; in its arenas where the endpoint maps memory.
  [[nodiscard]] std::vector<core::Buffer> vectors(std::size_t floats);

  /// Makes and starts one for `rank`, over its part of `vectors`; its end is in ended().
  std::size_t start(std::size_t rank, CollectiveTask task, std::vector<core::Buffer>& vectors);
  std::size_t start(std::size_t rank, Group group, CollectiveTask task, std::vector<core::Buffer>& vectors);
  void cancel(std::size_t which) { runs_[which].collective->cancel(); }
  [[nodiscard]] const std::optional<core::Result<void>>& ended(std::size_t which) const { return runs_[which].ended; }

  /// Delivers what completes until `done` holds; a test failure after a long time.
  void drive(const std::function<bool()>& done);
  /// Until every run that was started has ended.
  void finish();
  /// Delivers what is there already.
  void poll();

 private:
  struct Member {
    std::shared_ptr<transport::Endpoint> endpoint;
    std::shared_ptr<Arenas> arenas;  // none: the endpoint maps no memory
    std::unique_ptr<Courier> courier;
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
