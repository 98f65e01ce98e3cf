/// `troupe top`: shows a run until the user has seen enough. Thread rule: the main thread, before any other thread starts.
#pragma once

#include "apps/top/live_source.hpp"

namespace troupe::apps {

/// Takes the terminal. Returns after q or Ctrl-C; Errc::interrupted after another signal; the source's failure. The terminal is restored in
/// any case. REQUIRES has_screen().
[[nodiscard]] core::Result<void> show_live(LiveSource& source);

}  // namespace troupe::apps
