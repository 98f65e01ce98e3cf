/// Where finished operations wait for whoever posted them. Several endpoints may share one queue (shared memory
/// inside a host and tcp between hosts, one exchanger): operation ids are unique in it.
///
/// Three ways to wait, none of which spins:
///   an event loop watches fd(), readable exactly while completions wait, and calls poll();
///   an actor gives `wake`, which sends it a message, and calls poll() when that arrives;
///   a thread with nothing else to do calls wait().
///
/// Thread-safe. Ownership: shared by its endpoints and its user; an endpoint pushes only what it was asked for, so
/// the queue holds at most one Completion per posted operation. Cost: one mutex per push, one system call when it
/// stops being empty.
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

/// A peer as one endpoint sees it: an index, valid for that endpoint's life and never reused, also after the peer was
/// lost.
enum class Peer : std::uint32_t {};

enum class Outcome : std::uint8_t {
  done,       ///< all bytes are where they belong
  cancelled,  ///< by cancel(): as if never posted; by close(): what the peer got is not known
  failed,     ///< see error
};

/// The end of an operation, delivered exactly once. From here on the endpoint does not touch the operation's memory.
/// A completion happens after everything the peer did before the send that it matched.
struct Completion {
  OperationId operation{};
  Peer peer{};
  Outcome outcome = Outcome::done;
  std::size_t bytes = 0;  // moved; 0 unless done
  core::Error error{};    // when failed
};

/// An absolute time on the queue's clock. Every blocking call takes one.
struct Deadline {
  core::Duration at{0};
};
[[nodiscard]] inline Deadline after(const core::Clock& clock, core::Duration delay) noexcept {
  return {clock.now() + delay};
}

class CompletionQueue {
 public:
  /// Called when the queue stops being empty, from whichever thread completed an operation, possibly from inside the
  /// call that posted it. Must not block, throw, or call an endpoint or this queue. May be empty.
  using Wake = std::function<void()>;

  /// Errc::io when the process has no file descriptor left. `clock` must outlive the queue and run by itself if
  /// wait() is to end at a deadline that has not passed yet.
  [[nodiscard]] static core::Result<std::shared_ptr<CompletionQueue>> create(const core::Clock& clock, Wake wake = {});
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;
  ~CompletionQueue();

  /// For poll(2), epoll or Asio: readable while completions wait. Only this class reads, writes and closes it.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// Appends all that wait to `out`, oldest first, and returns how many. Does not block.
  std::size_t poll(std::vector<Completion>& out);
  /// As poll(), but blocks until there is at least one, or fails with Errc::timeout at the deadline. A timeout ends the
  /// waiting only: operations stay posted and keep their memory until they complete; cancel() is what takes it back.
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
