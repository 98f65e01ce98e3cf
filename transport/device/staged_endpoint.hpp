/// Adds device memory to an endpoint that supports host memory only. A message from or to a device is copied through a page-locked buffer.
/// It is one message of the same length for the inner endpoint, so one side may stage and the other not. Copies of one message overlap with
/// the transfer of others: the pipeline is over the exchange's chunks.
///
/// The contract is that of transport/endpoint.hpp, with these additions. A send completes when the peer's receive has the data. With a
/// staging peer that is the peer's host buffer: the copy to the peer's device follows before the receive completes. No operation waits for
/// a buffer, so tags do not wait for each other. The credit limits sends, the posted receives limit receives, and `staging_bytes` (blocks
/// are powers of two) limits both: beyond it send() and receive() fail with Errc::out_of_memory. A failed copy ends its operation with the
/// copier's error.
///
/// What the inner endpoint takes itself (Endpoint::takes_device, a library that knows the device) is not copied.
///
/// Mapped memory is that of the inner endpoint. The inner endpoint's native reduction is not offered, because it takes no device memory.
/// Thread-safe as Endpoint is: one mutex, and one thread that passes completions on.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>

#include "transport/device/device_copier.hpp"
#include "transport/device/staging_pool.hpp"
#include "transport/endpoint.hpp"
#include "transport/endpoint_options.hpp"

namespace troupe::transport {

class StagedEndpoint final : public Endpoint {
 public:
  /// `inner` completes into `inner_completions`, which only this object reads, and has the credit of `options`. Starts the thread. REQUIRES
  /// options.device and options.completions.
  StagedEndpoint(std::unique_ptr<Endpoint> inner, std::shared_ptr<CompletionQueue> inner_completions,
                 const EndpointOptions& options);
  ~StagedEndpoint() override { close(); }

  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] const Address& address() const noexcept override { return inner_->address(); }
  [[nodiscard]] CompletionQueue& completions() const noexcept override { return *completions_; }
  [[nodiscard]] MappedMemory* mapped_memory() noexcept override { return inner_->mapped_memory(); }
  [[nodiscard]] core::Result<Connection> connect(const Address& remote) override;
  void disconnect(Peer peer, std::string_view why) override { inner_->disconnect(peer, why); }
  [[nodiscard]] core::Result<std::optional<OperationId>> send(Peer peer, Tag tag, ConstMemoryView memory) override;
  [[nodiscard]] core::Result<OperationId> receive(Peer peer, Tag tag, MemoryView memory) override;
  void cancel(OperationId operation) override;
  [[nodiscard]] Traffic traffic(Peer peer) const override { return inner_->traffic(peer); }
  [[nodiscard]] std::uint64_t progress(Peer peer) const override { return inner_->progress(peer); }
  void close() noexcept override;

 private:
  struct Operation {
    enum class Kind : std::uint8_t { connect, send, receive } kind;
    enum class Phase : std::uint8_t {
      copying,  // from the device: the memory is lent to the copier
      queued,   // the previous send of this tag is not posted yet
      posted,   // the inner endpoint has it
      landing,  // copy to the device
    } phase;
    Peer peer{};
    Tag tag{};
    std::byte* device = nullptr;  // destination of a staged receive
    ConstMemoryView memory{};     // what a send posts on the inner endpoint
    std::size_t bytes = 0;
    StagingPool::Block block{};
    OperationId inner{};
    bool cancelled = false;
  };
  using Operations = std::unordered_map<OperationId, Operation>;
  /// Sends to one peer that have not completed.
  struct Account {
    std::size_t messages = 0;
    std::size_t bytes = 0;
  };

  // REQUIRES mutex_ held, except pass_on(), check() and is_direct().
  [[nodiscard]] bool is_direct(Peer peer, std::size_t bytes) const {
    return copier_->is_known_to_libraries() && inner_->takes_device(peer, bytes);
  }
  void pass_on();
  void check(core::MemorySpace space, std::size_t bytes) const;
  [[nodiscard]] core::Result<void> open() const;
  /// Continues an operation after the inner endpoint, or a copy, has ended its part.
  void advance(Completion ended);
  void copied(Operations::iterator operation, Completion ended);
  void complete_copy(Operations::iterator operation);
  /// Posts queued sends, in order: of one tag, or of all tags of this peer.
  void post(Peer peer, Tag tag);
  void post_all(Peer peer);
  void finish(Operations::iterator operation, Completion completion);
  void leave_queue(const Operation& operation, OperationId id);
  [[nodiscard]] OperationId expect(OperationId outer);
  [[nodiscard]] DeviceCopier::Done when_copied(OperationId operation);

  const std::shared_ptr<DeviceCopier> copier_;
  const std::shared_ptr<CompletionQueue> completions_;        // the user's
  const std::shared_ptr<CompletionQueue> inner_completions_;  // copies report their ends there too
  const std::unique_ptr<Endpoint> inner_;
  const Credit credit_;
  const Capabilities capabilities_;
  const OperationId stop_;

  std::mutex mutex_;
  std::condition_variable ended_;
  StagingPool pool_;
  Operations operations_;
  std::unordered_map<OperationId, OperationId> outer_;  // key: the operation's number in inner_completions_
  std::map<Peer, Account> accounts_;
  std::map<std::pair<Peer, Tag>, std::deque<OperationId>> queues_;  // sends not posted yet, oldest first
  bool closed_ = false;

  std::mutex closing_;
  std::thread thread_;
};

/// Makes an endpoint with `make`, and stages it if it does not take device memory itself. Errors: those of `make`, and Errc::io.
[[nodiscard]] core::Result<std::unique_ptr<Endpoint>> make_staged_endpoint(const MakeEndpoint& make,
                                                                           const EndpointOptions& options);

}  // namespace troupe::transport
