/// Blocking waits for an actor's answer that end when the user interrupts, or when nothing has moved for too long. For code outside actors.
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

/// Errc::interrupted: there is no run yet that could be asked to stop, and nothing to save.
[[nodiscard]] inline core::Error interrupted_early() {
  return {core::Errc::interrupted, "interrupted before it began"};
}

/// Blocks as `asked`.receive() does, until its deadline at most, but that `on_error` is called when `stop` is requested:
/// at once, unless the answer has come before. An answer that comes later is dropped.
template <class Asked, class OnAnswer, class OnError>
void receive(Asked& asked, const std::stop_token& stop, OnAnswer on_answer, OnError on_error) {
  const auto self = caf::actor_cast<caf::strong_actor_ptr>(asked.self());
  // As CAF itself lets a deadline pass: an error that comes as if it were the answer.
  const std::stop_callback interrupt(stop, [&self, id = asked.id()] {
    self->enqueue(nullptr, id, caf::make_message(caf::make_error(caf::exit_reason::user_shutdown)), nullptr);
  });
  asked.receive(std::move(on_answer), std::move(on_error));
}

/// Something that moves, and for how long it may stand still.
struct Movement {
  const std::atomic<std::uint64_t>& count;  // grows while it moves
  core::Duration silence;
};

/// Blocks until `over` is requested, or calls `silent` and returns when there is no movement for so long.
void watch_movement(const Movement& movement, const std::stop_token& over, const std::function<void()>& silent);

/// As receive(); and `on_error` hears caf::sec::request_timeout when there is no movement for so long. For requests with kNoDeadline: an
/// answer that needs bytes to move comes when they have (silence.hpp).
template <class Asked, class OnAnswer, class OnError>
void receive(Asked& asked, const Movement& movement, const std::stop_token& stop, OnAnswer on_answer,
             OnError on_error) {
  const std::jthread watch([&movement, self = caf::actor_cast<caf::strong_actor_ptr>(asked.self()),
                            id = asked.id()](const std::stop_token& answered) {
    watch_movement(movement, answered, [&] {
      self->enqueue(nullptr, id, caf::make_message(caf::make_error(caf::sec::request_timeout)), nullptr);
    });
  });
  receive(asked, stop, std::move(on_answer), std::move(on_error));
}

}  // namespace troupe::actors
