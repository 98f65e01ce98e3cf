/// One rank's link to the other ranks of a neuron-parallel replica: an endpoint within the process and the collectives over it.
///
/// Thread rule: connect() in one thread; then each communicator in the thread of its rank. All ranks start the same collectives in the same
/// order. A collective that is started lends its vector until finish(). Every wait ends at a deadline.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "transport/endpoint.hpp"
#include "transport/exchange/collectives/parts.hpp"
#include "transport/exchange/operation_queue.hpp"
#include "transport/exchange/scratch.hpp"

namespace troupe::transport {
class InprocHub;
}

namespace troupe::cpu {

/// A rank could not exchange values with the others: the replica cannot compute any more.
class CommunicationFailed : public std::runtime_error {
 public:
  explicit CommunicationFailed(core::Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
  [[nodiscard]] const core::Error& error() const noexcept { return error_; }

 private:
  core::Error error_;
};

class Communicator {
 public:
  /// Connects `ranks` ranks, by rank. Each wait takes `deadline` at most. Errc::io: the process has no file descriptors left.
  [[nodiscard]] static core::Result<std::vector<std::unique_ptr<Communicator>>> connect(std::size_t ranks,
                                                                                        core::Duration deadline);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator();

  /// As in transport/exchange/collectives/parts.hpp. One at a time. With one rank there is nothing to do.
  void start_allgather(core::Span vector, std::span<const core::Slice> parts);
  void start_reduce_scatter(core::Span vector, std::span<const core::Slice> parts, std::size_t summands);
  /// Waits for the collective. Throws CommunicationFailed: Errc::timeout, or Errc::peer_lost after another rank's abandon().
  void finish();

  /// This rank cannot go on: the waits of the others fail. Its own vectors are free again.
  void abandon() noexcept;

 private:
  Communicator(std::size_t rank, std::size_t ranks, core::Duration deadline);
  [[nodiscard]] core::Result<void> open(const std::shared_ptr<transport::InprocHub>& hub);
  [[nodiscard]] core::Result<void> join(const std::vector<std::unique_ptr<Communicator>>& all);
  [[nodiscard]] core::Result<void> wait_until_joined();
  [[nodiscard]] exchange::PartsTask task(core::Span vector, std::span<const core::Slice> parts);
  void start(std::unique_ptr<exchange::Collective> collective);
  void deliver();

  core::SteadyClock clock_;
  const core::Duration deadline_;
  exchange::Group group_;
  std::unique_ptr<transport::Endpoint> endpoint_;
  std::optional<exchange::OperationQueue> operations_;
  exchange::Scratch scratch_;
  std::uint32_t started_ = 0;  // collectives
  std::unique_ptr<exchange::Collective> collective_;
  exchange::Collective::Done done_;
  std::optional<core::Result<void>> ended_;
  std::vector<transport::Completion> completions_;
};

}  // namespace troupe::cpu
