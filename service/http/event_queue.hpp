/// The server-sent events that wait for one client. It is bounded: a client that reads slowly loses droppable events first; if that is not
/// enough it is disconnected, and resumes from the last event that it has seen. Thread-safe: producers push from any thread, the session
/// takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

namespace troupe::service {

/// An event in its form on the wire. Clients share it.
struct Event {
  std::shared_ptr<const std::string> text;
  bool droppable = false;
};

/// `data`: one line. An empty `id` leaves the client's position as it is.
[[nodiscard]] Event make_event(std::string_view name, std::string_view data, std::string_view id,
                               bool droppable = false);

class EventQueue {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  explicit EventQueue(std::size_t most_bytes = kMostBytes) : most_(most_bytes) {}

  /// False: nobody takes events any more, now or because one of these does not fit. `ready` is called once.
  bool push(std::span<const Event> events);
  bool push(const Event& event) { return push({&event, 1}); }
  /// The producer has no more events.
  void end();
  /// Bytes that can be pushed before events are dropped.
  [[nodiscard]] std::size_t free_bytes() const;
  [[nodiscard]] bool abandoned() const;
  [[nodiscard]] std::uint64_t dropped() const;

  /// `ready` is called by a producer, on its thread, when there is something to take or the queue has ended. Null: not any more; when this
  /// returns no call is under way. `ready` must not use the queue.
  void on_ready(std::function<void()> ready);
  /// The events that wait, at most about `most_bytes`; empty: none.
  [[nodiscard]] std::string take(std::size_t most_bytes);
  [[nodiscard]] bool ended() const;  // and nothing is left to take
  /// The client is gone.
  void abandon();

 private:
  void add(const Event& event);
  void drop_for(std::size_t bytes);

  mutable std::mutex mutex_;
  std::deque<Event> events_;
  std::size_t most_, bytes_ = 0;
  std::uint64_t dropped_ = 0;
  bool ended_ = false, abandoned_ = false;
  std::function<void()> ready_;
};

}  // namespace troupe::service
