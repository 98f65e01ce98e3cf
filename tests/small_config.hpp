/// Configurations of tests of whole runs.
#pragma once

#include <string>

namespace troupe::tests {

/// A small model on 60 batches of drawn digits: it learns within an epoch or two. Sections [model] and [data], after `before` (the text of [run]) and before `after` ([train], [strategy], [cluster]).
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

/// The same on 20 batches: for many runs, of which none needs to learn much.
inline std::string tiny_config(const std::string& before, const std::string& after) {
  return before + R"(
[model]
name = "mlp"
widths = [16]
[data]
name = "glyphs"
batch = 20
train_samples = 400
test_samples = 100
)" + after;
}

}  // namespace troupe::tests
