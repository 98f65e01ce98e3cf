/// What the documentation promises of a run that something happens to (docs/nodes.md, "When a worker is lost"; docs/strategies/), said a
/// second time and independently of the code that does it: which exit codes a session may end with, and who takes newcomers when.
/// Pure.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "tests/histories/history.hpp"

namespace troupe::histories {

struct Conduct {
  bool goes_on = true;     ///< without a worker that is lost; else the session ends with exit code 75
  bool newcomers = true;   ///< a node that comes, or comes back, is a member
  bool at_epochs = false;  ///< but not before the next epoch begins
  bool last_step = false;  ///< of a run that ends with 75: the last step that the others have ended is saved
  bool shares = false;     ///< all take the same steps: what a lost worker had on lease is passed over, else it returns
  bool passes_over = false;  ///< steps that a worker is late for are given up, and their batches with them
};

/// Of a run over nodes.
[[nodiscard]] Conduct conduct_of(const History& history);

/// What happened to one session: from a start of `troupe train` to its end.
struct Session {
  std::uint32_t nodes = 0;       ///< 0: one process
  std::uint32_t nodes_lost = 0;  ///< members that were killed or silent for too long, and have not come back
  bool lost = false;             ///< ever
  bool interrupted = false;      ///< SIGINT was sent
  bool crashed = false;          ///< SIGKILL was sent
  bool may_finish = false;       ///< it has a last epoch that it may come to
};

/// Exit codes that the session may end with; -1: killed by a signal.
[[nodiscard]] std::set<int> exit_codes(const Conduct& conduct, const Session& session);

}  // namespace troupe::histories
