/// Completion scripts: they ask the program itself what may follow (`troupe completion SHELL -- WORDS`), so they never go out of date.
/// Constant data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/shell/value_kinds.hpp"

namespace troupe::apps {

/// "bash", "fish", "zsh".
[[nodiscard]] const std::vector<std::string>& completion_shells();

/// The script of one of completion_shells().
[[nodiscard]] std::string_view completion_script(std::string_view shell);

/// What the scripts read: a line per candidate, the word, then a tab and its help; then ":files" or ":directories" if paths may follow.
[[nodiscard]] std::string candidate_lines(const ValueCandidates& candidates);

}  // namespace troupe::apps
