/// Runs of the scripted guest (tests/guest/programs) under `troupe launch`. TearDown() checks that no process remains. One thread.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/apps/program.hpp"
#include "tests/nodes/process.hpp"

namespace troupe::apps {

using Words = std::vector<std::string>;

class Launched : public testing::Test {
 protected:
  void TearDown() override;

  /// `troupe launch OPTIONS -- scripted_guest WORDS`, with progress as plain lines and the summary as JSON.
  [[nodiscard]] Words command(const Words& options, const Words& words = {}) const;
  /// The same of another program.
  [[nodiscard]] Words command_of(const Words& options, const Words& program) const;
  /// Runs it to its end. Its exit code is 0.
  nlohmann::json launch(const Words& options, const Words& words = {});
  /// The directory of the newest run.
  [[nodiscard]] std::string run() const;
  /// `troupe replay` reaches every hash.
  void expect_replays();
  /// The parameters of the newest checkpoint, w and b.
  [[nodiscard]] std::vector<double> parameters() const;
  /// The samples of the steps that guest `name` has computed, in order (word log=).
  [[nodiscard]] std::vector<std::vector<int>> steps_of(const std::string& name) const;
  /// The epoch and the position that each of these steps was told.
  [[nodiscard]] std::vector<std::pair<int, int>> places_of(const std::string& name) const;
  [[nodiscard]] std::string log_word() const { return "log=" + folder_.file("log"); }
  /// Processes, with their command lines, whose environment or command line names this test's folder.
  [[nodiscard]] Words remaining() const;

  TemporaryDirectory folder_;
};

/// t_j(k) of the scripted guest.
[[nodiscard]] double target(int j, int sample);
/// The gradient of a batch of it: p_j − mean t_j.
[[nodiscard]] double gradient(int j, double p, const std::vector<int>& samples);

}  // namespace troupe::apps
