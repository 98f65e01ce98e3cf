/// The documented conduct of a disturbed run (docs/nodes.md, "When a worker is lost"; docs/strategies/), written a second time and
/// independently of the code that implements it: the exit codes that a session may end with, and when newcomers become members. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "tests/histories/history.hpp"

namespace troupe::histories {

struct Conduct {
  bool goes_on = true;       ///< the run continues after the loss of a worker; else the session ends with exit code 75
  bool newcomers = true;     ///< a node that connects late or again becomes a member
  bool at_epochs = false;    ///< only when the next epoch begins
  bool last_step = false;    ///< if a run ends with 75, the last step that all survivors have ended is saved
  bool in_step = false;      ///< the workers go in step: a lost worker's leases are passed over; else they return
  bool passes_over = false;  ///< steps with a late worker are dropped, and their batches with them
};

/// Of a run over nodes.
[[nodiscard]] Conduct conduct_of(const History& history);

/// The disturbances of one session: from a start of `troupe train` to its end.
struct Session {
  std::uint32_t nodes = 0;       ///< 0: one process
  std::uint32_t nodes_lost = 0;  ///< members that were killed or silent for too long, and are not back
  bool lost = false;             ///< a member was lost at some time
  bool interrupted = false;      ///< SIGINT was sent
  bool crashed = false;          ///< SIGKILL was sent
  bool may_finish = false;       ///< it has a last epoch and may reach it
};

/// Exit codes that the session may end with; -1: killed by a signal.
[[nodiscard]] std::set<int> exit_codes(const Conduct& conduct, const Session& session);

}  // namespace troupe::histories
