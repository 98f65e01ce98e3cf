/// Two nodes on this host and runs over them, for the tests of this folder. TearDown() checks that nothing remains: nodes end on
/// SIGTERM with exit code 0 and leave no child, no file of shared memory and no socket. One thread.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/apps/program.hpp"
#include "tests/nodes/process.hpp"
#include "tests/small_config.hpp"

namespace troupe::nodes {

/// A small run: 60 batches of 20 per epoch. Synthetic step times make it as long as a test needs.
inline const std::string kConfig = tests::small_config("[run]\nepochs = 2", R"([train]
lr = 0.05
[strategy]
name = "easgd"
[cluster]
workers = 3
)");

class NodesFixture : public testing::Test {
 protected:
  NodesFixture();
  void TearDown() override;

  /// Starts one more node and waits until it listens.
  NodeProcess& start_node(const NodeProcess::Options& options = {});
  /// Starts `count` nodes.
  void start_nodes(std::size_t count, const security::TlsFiles& tls = {});
  [[nodiscard]] NodeProcess& node(std::size_t k) { return nodes_.at(k); }
  /// The names of the running nodes: "127.0.0.1:4001,127.0.0.1:4002".
  [[nodiscard]] std::string names();

  /// The command `troupe train` over all nodes.
  [[nodiscard]] std::vector<std::string> train(const std::vector<std::string>& more = {});
  /// The command `troupe train --resume` over all nodes.
  [[nodiscard]] std::vector<std::string> resume(const std::vector<std::string>& more = {});
  /// Two epochs more than `ended` had done: where to finish an endless run.
  [[nodiscard]] static std::uint64_t two_epochs_after(Process& ended);
  /// `resume` to the end of epoch `epochs`, with steps that take no longer than they must.
  [[nodiscard]] std::vector<std::string> resume_to(std::uint64_t epochs);
  /// `more`, with a --set for each of `settings`.
  [[nodiscard]] static std::vector<std::string> with(const std::vector<std::string>& settings,
                                                     const std::vector<std::string>& more = {});

  /// The summary that `--json` has printed. A discarded JSON value: it has printed none.
  [[nodiscard]] static nlohmann::json summary(Process& process);
  /// The directory of the only run, or of the newest one.
  [[nodiscard]] std::string run() const;
  [[nodiscard]] bool no_run() const;
  /// `troupe replay` reaches the same numbers.
  void expect_replays(const std::string& run);
  /// A short run over the remaining nodes succeeds.
  void expect_free();

  apps::TemporaryDirectory folder_;
  std::string config_;
  std::deque<NodeProcess> nodes_;
  security::TlsFiles tls_;  // of `train`

 private:
  std::set<std::string> shared_memory_;
};

}  // namespace troupe::nodes
