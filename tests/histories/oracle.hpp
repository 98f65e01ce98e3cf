/// Judges a history by what its run has left: every row of docs/nodes.md that can be read from a directory.
#pragma once

#include <string>
#include <vector>

#include "tests/histories/player.hpp"

namespace troupe::histories {

/// A line for each thing that must not be. `folder`: where the history was played; the undisturbed run that it is compared with, in one
/// process, is trained there, too.
[[nodiscard]] std::vector<std::string> judge(const History& history, const Outcome& outcome,
                                             const tests::Folder& folder);

}  // namespace troupe::histories
