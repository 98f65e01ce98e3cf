/// Two nodes on this host and runs over them, for the tests of this folder. Afterwards nothing may be left: nodes end on
/// SIGTERM with exit code 0, and there is no child, no file of shared memory and no socket of theirs.
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

/// 60 batches of 20 per epoch: a small run, and with synthetic steps one that lasts as long as a test needs.
inline const std::string kConfig = tests::small_config("[run]\nepochs = 2", R"([train]
lr = 0.05
[strategy]
name = "easgd"
[cluster]
workers = 3
)");

class Company : public testing::Test {
 protected:
  Company();
  void TearDown() override;

  /// One more node, up.
  NodeProcess& start_node(const NodeProcess::Options& options = {});
  /// `count` of them.
  void start_nodes(std::size_t count, const security::TlsFiles& tls = {});
  [[nodiscard]] NodeProcess& node(std::size_t k) { return nodes_.at(k); }
  /// Of those that run: "127.0.0.1:4001,127.0.0.1:4002".
  [[nodiscard]] std::string names();

  /// `troupe train` over all nodes.
  [[nodiscard]] std::vector<std::string> train(const std::vector<std::string>& more = {});
  /// `troupe train --resume` over all nodes.
  [[nodiscard]] std::vector<std::string> resume(const std::vector<std::string>& more = {});
  /// A --set for each.
  [[nodiscard]] static std::vector<std::string> with(const std::vector<std::string>& settings,
                                                     const std::vector<std::string>& more = {});

  /// What `--json` has printed; null when it has not.
  [[nodiscard]] static nlohmann::json summary(Process& process);
  /// The only run, or the newest one.
  [[nodiscard]] std::string run() const;
  [[nodiscard]] bool no_run() const;
  /// `troupe replay` finds the same numbers.
  void expect_replays(const std::string& run);
  /// A short run over the nodes that are left goes well.
  void expect_free();

  apps::TemporaryDirectory folder_;
  std::string config_;
  std::deque<NodeProcess> nodes_;
  security::TlsFiles tls_;  // of `train`

 private:
  std::set<std::string> shared_memory_;
};

}  // namespace troupe::nodes
