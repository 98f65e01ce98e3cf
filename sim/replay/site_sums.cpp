#include "sim/replay/site_sums.hpp"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "transport/endpoint_options.hpp"
#include "transport/inproc/endpoint.hpp"

namespace troupe::replay {

struct SiteSums::Member {
  explicit Member(std::unique_ptr<transport::Endpoint> made) : endpoint(std::move(made)), operations(*endpoint) {}
  std::unique_ptr<transport::Endpoint> endpoint;
  exchange::OperationQueue operations;
  std::vector<transport::Peer> peers{};  // by rank
};

SiteSums::SiteSums(const experiment::ExchangePlan& plan, const core::Kernels& kernels)
    : plan_(plan), kernels_(kernels) {}

SiteSums::~SiteSums() {
  for (const auto& member : members_) member->endpoint->close();
}

core::Result<std::unique_ptr<SiteSums>> SiteSums::create(const experiment::ExchangePlan& plan, std::size_t workers,
                                                         const core::Kernels& kernels) {
  std::unique_ptr<SiteSums> sums(new SiteSums(plan, kernels));
  if (auto met = sums->meet(workers); !met) return tl::unexpected(met.error());
  return sums;
}

core::Result<void> SiteSums::meet(std::size_t workers) {
  auto completions = transport::CompletionQueue::create(clock_);
  if (!completions) return tl::unexpected(completions.error());
  completions_ = std::move(*completions);
  transport::EndpointOptions options;
  options.completions = completions_;
  options.hub = transport::make_inproc_hub("replay");
  for (std::size_t w = 0; w < workers; ++w) {
    options.name = fmt::format("worker {}", w);
    auto endpoint = transport::make_inproc_endpoint(options);
    if (!endpoint) return tl::unexpected(endpoint.error());
    members_.push_back(std::make_unique<Member>(std::move(*endpoint)));
  }
  for (const auto& member : members_) {
    for (const auto& other : members_) {
      if (other == member) {
        member->peers.emplace_back();
        continue;
      }
      const auto connection = member->endpoint->connect(other->endpoint->address());
      if (!connection) return tl::unexpected(connection.error());
      member->peers.push_back(connection->peer);
    }
  }
  std::vector<transport::Completion> established;
  completions_->poll(established);
  return {};
}

void SiteSums::run(const strategies::Group& group, const std::vector<core::Span>& vectors, float scale,
                   core::Rounding rounding) {
  auto algorithm = plan_.reduction(vectors.front().size(), rounding);
  // ar, nccl: only the library knows its order; check_exchange rejects requests for its bits earlier.
  if (exchange::info(algorithm).in_unknown_order()) algorithm = exchange::Algorithm::asa;
  // The same sums in the same order, without shared arenas.
  if (algorithm == exchange::Algorithm::shm) algorithm = exchange::Algorithm::asa;
  std::size_t left = group.size();
  std::optional<core::Error> failed;
  std::vector<std::unique_ptr<exchange::Collective>> collectives;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    const auto& self = *members_.at(group[rank]);
    exchange::Group seen{.rank = rank, .peers = {}};
    for (const auto worker : group) {
      seen.peers.push_back(self.peers.at(worker));
      if (!plan_.site_hosts.empty()) seen.hosts.push_back(plan_.site_hosts.at(plan_.worker_sites.at(worker)));
    }
    collectives.push_back(exchange::make_collective(
        members_[group[rank]]->operations, kernels_, std::move(seen),
        {.algorithm = algorithm, .half = plan_.half(), .scale = scale, .vector = vectors[rank]},
        [&](const core::Result<void>& result) {
          --left;
          if (!result) failed = result.error();
        }));
  }
  for (const auto& collective : collectives) collective->start();
  std::vector<transport::Completion> completions;
  while (left > 0 && !failed && completions_->poll(completions) > 0) {
    for (const auto& completion : completions)
      for (const auto worker : group)
        if (members_[worker]->operations.deliver(completion)) break;
    for (const auto worker : group) members_[worker]->operations.flush();
    completions.clear();
  }
  if (failed || left > 0)
    throw std::logic_error("replay: a reduction does not end: " + (failed ? failed->message : "no member progresses"));
}

}  // namespace troupe::replay
