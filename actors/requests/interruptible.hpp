/// Blocking waits for an actor's answer, for threads outside actors. An interrupt by the user ends them, or too long without movement.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <thread>
#include <utility>

#include <caf/all.hpp>

#include "core/clock.hpp"
#include "core/error.hpp"

namespace troupe::actors {

/// Blocks as `asked`.receive() does, at most until its deadline. A request of `stop` calls `on_error` at once, unless the answer came
/// first. A later answer is dropped.
template <class Asked, class OnAnswer, class OnError>
void receive(Asked& asked, const std::stop_token& stop, OnAnswer on_answer, OnError on_error) {
  const auto self = caf::actor_cast<caf::strong_actor_ptr>(asked.self());
  // CAF ends a deadline in the same way: an error arrives in place of the answer.
  const std::stop_callback interrupt(stop, [&self, id = asked.id()] {
    self->enqueue(nullptr, id, caf::make_message(caf::make_error(caf::exit_reason::user_shutdown)), nullptr);
  });
  asked.receive(std::move(on_answer), std::move(on_error));
}

/// A counter of movement, and how long it may stand still.
struct Movement {
  const std::atomic<std::uint64_t>& count;  // grows while bytes move
  core::Duration silence;
};

/// Blocks until `over` is requested. Calls `silent` and returns if nothing moves for movement.silence.
void watch_movement(const Movement& movement, const std::stop_token& over, const std::function<void()>& silent);

/// Ends the request `asked` with caf::sec::request_timeout if nothing moves for movement.silence. Stop the thread when the answer has come.
template <class Asked>
[[nodiscard]] std::jthread end_when_silent(Asked& asked, const Movement& movement) {
  return std::jthread([movement, self = caf::actor_cast<caf::strong_actor_ptr>(asked.self()),
                       id = asked.id()](const std::stop_token& answered) {
    watch_movement(movement, answered, [&] {
      self->enqueue(nullptr, id, caf::make_message(caf::make_error(caf::sec::request_timeout)), nullptr);
    });
  });
}

/// As receive(); also calls `on_error` with caf::sec::request_timeout if nothing moves for movement.silence. For requests with kNoDeadline
/// whose answer needs bytes to move (silence.hpp).
template <class Asked, class OnAnswer, class OnError>
void receive(Asked& asked, const Movement& movement, const std::stop_token& stop, OnAnswer on_answer,
             OnError on_error) {
  const auto watch = end_when_silent(asked, movement);
  receive(asked, stop, std::move(on_answer), std::move(on_error));
}

}  // namespace troupe::actors
