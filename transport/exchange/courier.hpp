/// Posts operations on an endpoint and calls back when each has ended; a send that finds no credit waits here, behind the
/// earlier ones to its peer. What exchanges are written with.
///
/// Whoever owns the courier hands it the completions of the endpoint's queue: deliver() for each, then flush(), which calls
/// back for what ended without ever being posted. Callbacks may post; none runs inside send(), receive() or cancel().
/// Not thread-safe: one thread drives it. The endpoint must outlive it. Memory is lent from the call to the callback.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string_view>

#include "transport/endpoint.hpp"

namespace troupe::exchange {

class Courier {
 public:
  /// Names one send or receive here, as OperationId does in the queue.
  enum class Ticket : std::uint64_t {};
  using Done = std::function<void(Ticket, const transport::Completion&)>;

  explicit Courier(transport::Endpoint& endpoint) noexcept : endpoint_(endpoint) {}
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;

  Ticket send(transport::Peer peer, transport::Tag tag, transport::ConstMemoryView memory, Done done);
  Ticket receive(transport::Peer peer, transport::Tag tag, transport::MemoryView memory, Done done);
  /// A sum over all members of the job, by the endpoint's native_reduction(), which must be there. It cannot be cancelled.
  Ticket sum(core::Span vector, Done done);
  /// The peer is lost to all who exchange with it.
  void give_up(transport::Peer peer, std::string_view why) { endpoint_.disconnect(peer, why); }
  /// The callback comes all the same, with what it came to. No effect on what has ended.
  void cancel(Ticket ticket);

  /// False: the completion is of an operation that somebody else posted.
  bool deliver(const transport::Completion& completion);
  void flush();

  [[nodiscard]] transport::NativeReduction* native_reduction() const noexcept { return endpoint_.native_reduction(); }
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
  /// What came of posting a send: posted, no credit, or over with an error.
  enum class Attempt : std::uint8_t { posted, no_credit, over };
  void end(Ticket ticket, transport::Peer peer, Done done, core::Error error);
  Attempt attempt(transport::Peer peer, Waiting& send);
  void retry(transport::Peer peer);

  transport::Endpoint& endpoint_;
  std::uint64_t next_ticket_ = 1;
  std::map<transport::OperationId, Posted> posted_;
  std::map<Ticket, transport::OperationId> operations_;
  std::map<transport::Peer, std::deque<Waiting>> waiting_;
  std::size_t waiting_count_ = 0;
  std::deque<Ended> ended_;
};

}  // namespace troupe::exchange
