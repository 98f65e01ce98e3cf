/// What may follow on a command line of `troupe`, for the completion of the shells. Made from the parsers' own tables. Thread rule: the main
/// thread.
#pragma once

#include <list>
#include <string>
#include <vector>

#include "apps/command_tree.hpp"
#include "apps/shell/value_kinds.hpp"

namespace troupe::apps {

/// Candidates for the last of `words`, which is being typed and may be empty. `words`: what follows `troupe`. `all`: from declare_all(), not
/// parsed. Runs are looked for in --dir, or in `runs`. A line that the parser would refuse has none.
[[nodiscard]] ValueCandidates candidates_for(const std::list<Parsed>& all, const std::vector<std::string>& words);

}  // namespace troupe::apps
