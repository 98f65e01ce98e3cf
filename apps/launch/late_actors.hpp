/// What a process does about actors that do not end.
#pragma once

#include "core/error.hpp"

namespace troupe::apps {

/// For actors::ActorsWait: says that an actor still waits for something that does not answer, and ends the process, without
/// destructors: the actor system's would wait for the actor without a deadline. `result`: what the process has come to; without an error it ends with
/// that of Errc::timeout. Any thread.
[[noreturn]] void end_without_late_actors(const core::Result<void>& result = {});

}  // namespace troupe::apps
