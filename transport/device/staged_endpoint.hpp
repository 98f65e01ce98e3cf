/// Gives an endpoint that knows host memory only device memory too: a message from or to a device is copied through a
/// page-locked buffer, and is one message of the same length to the endpoint underneath. So one side may stage and the other
/// not. Copies of one message overlap with the travelling of others: the exchange's chunks are what is pipelined.
///
/// The contract is that of transport/endpoint.hpp, with these additions. A send is done when the peer's receive has it, and with a
/// peer that stages that is its buffer on the host: its copy to the device still follows, before the receive is done.
/// Nothing waits for a buffer, so tags do not wait for each other: sends are bounded by the credit, receives by what is posted, and
/// both by `staging_bytes` (powers of two): send() and receive() beyond it are refused with Errc::out_of_memory. A copy that fails ends
/// its operation with the copier's error.
///
/// Mapped memory is the endpoint's underneath; its native reduction is not offered, because it takes no device memory.
/// Thread-safe as Endpoint is: one mutex, and a thread that passes completions on.
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
#include "transport/endpoint.hpp"
#include "transport/endpoint_options.hpp"
#include "transport/device/staging_pool.hpp"

namespace troupe::transport {

class StagedEndpoint final : public Endpoint {
 public:
  /// `inner` completes into `inner_completions`, which nobody else reads, and has the credit of `options`. Starts the thread.
  /// REQUIRES options.device and options.completions.
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
      queued,   // a send whose predecessor of the same tag is not posted yet
      posted,   // the endpoint underneath has it
      landing,  // to the device
    } phase;
    Peer peer{};
    Tag tag{};
    std::byte* device = nullptr;  // a staged receive's memory
    ConstMemoryView memory{};     // what a send posts underneath
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

  // All below with mutex_ held, but for pass_on() and check().
  void pass_on();
  void check(core::MemorySpace space, std::size_t bytes) const;
  [[nodiscard]] core::Result<void> open() const;
  /// What becomes of an operation when the endpoint underneath, or a copy, has ended its part.
  void advance(Completion ended);
  void copied(Operations::iterator operation, Completion ended);
  void land(Operations::iterator operation);
  /// Posts what can be posted, in order: of one tag, or of all to this peer.
  void post(Peer peer, Tag tag);
  void post_all(Peer peer);
  void finish(Operations::iterator operation, Completion completion);
  void leave_queue(const Operation& operation, OperationId id);
  [[nodiscard]] OperationId expect(OperationId outer);
  [[nodiscard]] DeviceCopier::Done when_copied(OperationId operation);

  const std::shared_ptr<DeviceCopier> copier_;
  const std::shared_ptr<CompletionQueue> completions_;        // the user's
  const std::shared_ptr<CompletionQueue> inner_completions_;  // the ends of copies come there too
  const std::unique_ptr<Endpoint> inner_;
  const Credit credit_;
  const Capabilities capabilities_;
  const OperationId stop_;

  std::mutex mutex_;
  std::condition_variable ended_;
  StagingPool pool_;
  Operations operations_;
  std::unordered_map<OperationId, OperationId> outer_;  // by the number in inner_completions_
  std::map<Peer, Account> accounts_;
  std::map<std::pair<Peer, Tag>, std::deque<OperationId>> queues_;  // sends that are not posted, oldest first
  bool closed_ = false;

  std::mutex closing_;
  std::thread thread_;
};

/// An endpoint made by `make`, staged if it does not take device memory by itself. Errors: those of `make`, and Errc::io.
[[nodiscard]] core::Result<std::unique_ptr<Endpoint>> make_staged_endpoint(const MakeEndpoint& make,
                                                                           const EndpointOptions& options);

}  // namespace troupe::transport
