/// The queue of completed operations. Several endpoints may share one queue, for example shared memory inside a host and tcp
/// between hosts in one exchanger. Operation ids are unique in a queue.
///
/// There are three ways to wait. None of them spins:
///   an event loop watches fd(), which is readable exactly while completions wait, and calls poll();
///   an actor passes `wake`, which sends it a message, and calls poll() when the message arrives;
///   a thread with nothing else to do calls wait().
///
/// Thread-safe. Ownership: shared by its endpoints and its user. An endpoint pushes at most one Completion per posted operation, so
/// the queue holds no more than that. Cost: one mutex per push, and one system call when the queue stops being empty.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"

namespace troupe::transport {

/// Names one posted operation in its queue. Never reused.
enum class OperationId : std::uint64_t {};

/// A peer's handle: an index that is valid for the life of one endpoint. It is never reused, not even after the peer is lost.
enum class Peer : std::uint32_t {};

enum class Outcome : std::uint8_t {
  done,       ///< all bytes are in the receiver's memory
  cancelled,  ///< by cancel(): as if never posted; by close(): the peer may have the message or not
  failed,     ///< see error
};

/// The end of an operation, delivered exactly once. After it the endpoint does not touch the operation's memory. Everything that
/// the peer did before its matching send happens before this completion.
struct Completion {
  OperationId operation{};
  Peer peer{};
  Outcome outcome = Outcome::done;
  std::size_t bytes = 0;  // moved; 0 unless done
  core::Error error{};    // when failed
};

/// An absolute time on the queue's clock. Every blocking call takes a deadline.
struct Deadline {
  core::Duration at{0};
};
[[nodiscard]] inline Deadline after(const core::Clock& clock, core::Duration delay) noexcept {
  return {clock.now() + delay};
}

class CompletionQueue {
 public:
  /// Called when the queue stops being empty, by the thread that completed the operation, possibly inside the call that posted it.
  /// Must not block, throw, or call an endpoint or this queue. May be empty.
  using Wake = std::function<void()>;

  /// Errc::io: the process has no file descriptor left. `clock` must outlive the queue. wait() ends at a future deadline only if
  /// the clock advances by itself.
  [[nodiscard]] static core::Result<std::shared_ptr<CompletionQueue>> create(const core::Clock& clock, Wake wake = {});
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;
  ~CompletionQueue();

  /// For poll(2), epoll or Asio: readable while completions wait. Only this class reads, writes or closes it.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// Appends all waiting completions to `out`, oldest first, and returns their number. Does not block.
  std::size_t poll(std::vector<Completion>& out);
  /// As poll(), but blocks until at least one completion waits. Errc::timeout at the deadline. A timeout ends only the wait:
  /// operations stay posted and keep their memory until they complete. To take memory back, call cancel().
  [[nodiscard]] core::Result<void> wait(std::vector<Completion>& out, Deadline deadline);

  /// For endpoints.
  [[nodiscard]] OperationId next_operation() noexcept {
    return OperationId{next_.fetch_add(1, std::memory_order_relaxed)};
  }
  void push(Completion completion);

 private:
  CompletionQueue(const core::Clock& clock, Wake wake, int fd) noexcept;

  const core::Clock& clock_;
  const Wake wake_;
  const int fd_;
  std::atomic<std::uint64_t> next_{1};
  std::mutex mutex_;
  std::vector<Completion> waiting_;  // guarded by mutex_, as is the state of fd_
};

}  // namespace troupe::transport
