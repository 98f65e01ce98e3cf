/// Posts operations on an endpoint and calls back at their ends. A send without credit waits here, behind the earlier sends to its peer.
/// Exchanges are written with it.
///
/// The owner passes the completions of the endpoint's queue on: deliver() for each, then flush(), which calls back for operations that
/// ended without being posted. Callbacks may post; none runs inside send(), receive() or cancel(). Not thread-safe: one thread drives it.
/// The endpoint outlives it. Memory is lent from the call to the callback.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string_view>

#include "transport/endpoint.hpp"

namespace troupe::exchange {

class OperationQueue {
 public:
  /// Identifies one send or receive of this queue.
  enum class Ticket : std::uint64_t {};
  using Done = std::function<void(Ticket, const transport::Completion&)>;

  /// `sums`: instead of the endpoint's native reduction, with completions in the same queue; null: the endpoint's. It outlives the object.
  explicit OperationQueue(transport::Endpoint& endpoint, transport::NativeReduction* sums = nullptr) noexcept
      : endpoint_(endpoint), sums_(sums) {}
  OperationQueue(const OperationQueue&) = delete;
  OperationQueue& operator=(const OperationQueue&) = delete;

  Ticket send(transport::Peer peer, transport::Tag tag, transport::ConstMemoryView memory, Done done);
  Ticket receive(transport::Peer peer, transport::Tag tag, transport::MemoryView memory, Done done);
  /// A sum over all members of the job by native_reduction(), which must exist. It cannot be cancelled.
  Ticket sum(core::Span vector, Done done);
  /// Disconnects the peer: it is lost for all exchanges.
  void give_up(transport::Peer peer, std::string_view why) { endpoint_.disconnect(peer, why); }
  /// The callback still comes, with the outcome. No effect on an ended operation.
  void cancel(Ticket ticket);

  /// False: another object posted this operation.
  bool deliver(const transport::Completion& completion);
  void flush();

  [[nodiscard]] transport::NativeReduction* native_reduction() const noexcept {
    return sums_ ? sums_ : endpoint_.native_reduction();
  }
  [[nodiscard]] std::size_t outstanding() const noexcept { return posted_.size() + waiting_count_ + ended_.size(); }

 private:
  struct Posted {
    Ticket ticket;
    Done done;
    bool is_send;
  };
  struct Waiting {
    Ticket ticket;
    transport::Tag tag;
    transport::ConstMemoryView memory;
    Done done;
  };
  struct Ended {
    Ticket ticket;
    Done done;
    transport::Completion completion;
  };
  /// Result of posting a send: posted, no credit, or ended with an error.
  enum class Attempt : std::uint8_t { posted, no_credit, over };
  void end(Ticket ticket, transport::Peer peer, Done done, core::Error error);
  Attempt attempt(transport::Peer peer, Waiting& send);
  void retry(transport::Peer peer);

  transport::Endpoint& endpoint_;
  transport::NativeReduction* const sums_;
  std::uint64_t next_ticket_ = 1;
  std::map<transport::OperationId, Posted> posted_;
  std::map<Ticket, transport::OperationId> operations_;
  std::map<transport::Peer, std::deque<Waiting>> waiting_;
  std::size_t waiting_count_ = 0;
  std::deque<Ended> ended_;
};

}  // namespace troupe::exchange
