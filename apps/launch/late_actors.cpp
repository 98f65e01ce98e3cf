#include "apps/launch/late_actors.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include "apps/output.hpp"

namespace troupe::apps {

void end_without_late_actors(const core::Result<void>& result) {
  if (!result) tell(fmt::format("troupe: {}\n", result.error().message));
  tell(
      "troupe: an actor has not ended in time; it may wait for a device or for an answer that does not come: the "
      "process exits without it. If it uses a GPU, look at that with nvidia-smi\n");
  ::_exit(core::exit_code(result ? core::Errc::timeout : result.error().code));
}

}  // namespace troupe::apps
