/// Messages of an actor to itself at a later time. Unlike with CAF's delayed_send, a message that is not due yet keeps nothing alive: the thread
/// of a detached actor ends only when nothing refers to the actor, and the end of a run waits for its threads. Thread rule: the actor's thread.
#pragma once

#include <caf/all.hpp>

#include "core/clock.hpp"

namespace troupe::actors {

class Timer {
 public:
  explicit Timer(caf::local_actor* self);

  /// `message` comes to the actor after this time, from itself. It is dropped if the actor has ended by then.
  template <class Message>
  void send(core::Duration after, Message message) {
    caf::delayed_anon_send(weak_self_, after, std::move(message));
  }

 private:
  caf::actor weak_self_;  // passes messages on to the actor as long as it exists
};

}  // namespace troupe::actors
