/// The configuration of tests of whole runs: a small model on 60 batches of drawn digits. It learns within an epoch or two.
#pragma once

#include <string>

namespace troupe::tests {

/// Sections [model] and [data], after `before` (the text of [run]) and before `after` ([train], [strategy], [cluster]).
inline std::string small_config(const std::string& before, const std::string& after) {
  return before + R"(
[model]
name = "mlp"
widths = [24]
[data]
name = "glyphs"
batch = 20
train_samples = 1200
test_samples = 200
)" + after;
}

}  // namespace troupe::tests
