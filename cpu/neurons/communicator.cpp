#include "cpu/neurons/communicator.hpp"

#include <utility>

#include <fmt/format.h>

#include "transport/inproc/endpoint.hpp"

namespace troupe::cpu {

core::Result<std::vector<std::unique_ptr<Communicator>>> Communicator::connect(std::size_t ranks,
                                                                               core::Duration deadline) {
  std::vector<std::unique_ptr<Communicator>> all;
  const auto hub = ranks > 1 ? transport::make_inproc_hub("neurons") : nullptr;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    all.push_back(std::unique_ptr<Communicator>(new Communicator(rank, ranks, deadline)));
    if (ranks == 1) return all;
    if (auto opened = all.back()->open(hub); !opened) return tl::unexpected(std::move(opened.error()));
  }
  for (const auto& one : all)
    if (auto joined = one->join(all); !joined) return tl::unexpected(std::move(joined.error()));
  for (const auto& one : all)
    if (auto joined = one->wait_until_joined(); !joined) return tl::unexpected(std::move(joined.error()));
  return all;
}

Communicator::Communicator(std::size_t rank, std::size_t ranks, core::Duration deadline)
    : deadline_(deadline), group_{.rank = rank, .peers = std::vector<transport::Peer>(ranks)} {
  done_ = [this](core::Result<void> result) { ended_ = std::move(result); };
}

Communicator::~Communicator() { abandon(); }

core::Result<void> Communicator::open(const std::shared_ptr<transport::InprocHub>& hub) {
  auto completions = transport::CompletionQueue::create(clock_);
  if (!completions) return tl::unexpected(std::move(completions.error()));
  auto endpoint = transport::make_inproc_endpoint(
      {.name = fmt::format("rank {}", group_.rank), .completions = *completions, .hub = hub});
  if (!endpoint) return tl::unexpected(std::move(endpoint.error()));
  endpoint_ = std::move(*endpoint);
  operations_.emplace(*endpoint_);
  return {};
}

core::Result<void> Communicator::join(const std::vector<std::unique_ptr<Communicator>>& all) {
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (rank == group_.rank) continue;
    const auto connection = endpoint_->connect(all[rank]->endpoint_->address());
    if (!connection) return tl::unexpected(connection.error());
    group_.peers[rank] = connection->peer;
  }
  return {};
}

core::Result<void> Communicator::wait_until_joined() {
  const auto deadline = transport::after(clock_, deadline_);
  while (completions_.size() + 1 < group_.size())
    if (auto waited = endpoint_->completions().wait(completions_, deadline); !waited) return waited;
  for (const auto& completion : completions_)
    if (completion.outcome != transport::Outcome::done) return tl::unexpected(completion.error);
  completions_.clear();
  return {};
}

exchange::PartsTask Communicator::task(core::Span vector, std::span<const core::Slice> parts) {
  return {.vector = vector, .parts = parts, .scratch = &scratch_, .tag = {.exchange = started_++}};
}

void Communicator::start_allgather(core::Span vector, std::span<const core::Slice> parts) {
  if (group_.size() > 1) start(exchange::make_allgather(*operations_, group_, task(vector, parts), done_));
}

void Communicator::start_reduce_scatter(core::Span vector, std::span<const core::Slice> parts, std::size_t summands) {
  if (group_.size() == 1) return;
  auto sum = task(vector, parts);
  sum.summands = summands;
  start(exchange::make_reduce_scatter(*operations_, group_, sum, done_));
}

void Communicator::start(std::unique_ptr<exchange::Collective> collective) {
  ended_.reset();
  collective_ = std::move(collective);
  collective_->start();
}

void Communicator::finish() {
  if (!collective_) return;
  operations_->flush();
  bool late = false;
  while (!ended_) {
    if (!endpoint_->completions().wait(completions_, transport::after(clock_, deadline_))) {
      late = true;
      collective_->cancel();
    }
    deliver();
  }
  collective_.reset();
  if (late)
    throw CommunicationFailed(
        {core::Errc::timeout, fmt::format("rank {} of a neuron-parallel replica waited {:g} s for "
                                          "the others",
                                          group_.rank, core::seconds(deadline_))});
  if (!*ended_) throw CommunicationFailed(ended_->error());
}

void Communicator::deliver() {
  for (const auto& completion : completions_) (void)operations_->deliver(completion);
  completions_.clear();
  operations_->flush();
}

void Communicator::abandon() noexcept {
  if (!endpoint_) return;
  endpoint_->close();  // all that was posted completes
  endpoint_->completions().poll(completions_);
  deliver();
  collective_.reset();
}

}  // namespace troupe::cpu
