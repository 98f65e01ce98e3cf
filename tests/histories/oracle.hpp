/// Judges a history by the files of its run: every row of docs/nodes.md that a run directory can show.
#pragma once

#include <string>
#include <vector>

#include "tests/histories/player.hpp"

namespace troupe::histories {

/// Returns one line per violation. `folder`: where the history was played. An undisturbed run in one process is trained there, too, for
/// comparison.
[[nodiscard]] std::vector<std::string> judge(const History& history, const Outcome& outcome,
                                             const tests::Folder& folder);

}  // namespace troupe::histories
