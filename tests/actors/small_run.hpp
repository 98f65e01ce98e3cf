/// Small training runs for tests: glyphs and a small perceptron in a temporary directory. The destructor removes the directory.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "actors/run/launch.hpp"
#include "actors/run/run.hpp"
#include "core/journal.hpp"
#include "experiment/state/checkpoint.hpp"

namespace troupe::tests {

/// The CPU backend, shared by all tests.
[[nodiscard]] nn::Backend& backend();

class SmallRun {
 public:
  /// `options` are "key=value" on top of a run of 2 workers × 20 samples over 1,200 glyphs, one epoch, BSP.
  /// `on` computes it, and outlives the run.
  explicit SmallRun(std::vector<std::string> options = {}, nn::Backend& on = backend());
  ~SmallRun();
  SmallRun(const SmallRun&) = delete;
  SmallRun& operator=(const SmallRun&) = delete;

  [[nodiscard]] core::Result<experiment::Settings> settings(const std::vector<std::string>& more = {}) const;
  /// Trains from the beginning; resume() continues the run, with `more` options on top.
  [[nodiscard]] experiment::RunEnd train(std::stop_token stop = {});
  /// Trains in one process whose sites count as sites of these hosts: `hosts[0]` is the coordinator's, `hosts[w + 1]` that of worker w.
  /// REQUIRES an exchange.endpoint.
  [[nodiscard]] experiment::RunEnd train_on_hosts(const std::vector<std::uint32_t>& hosts);
  /// Trains in one process with a changed launch: `change` receives what train() would launch. REQUIRES an exchange.endpoint.
  [[nodiscard]] experiment::RunEnd train_launched(const std::function<void(actors::Launch&)>& change);
  /// Trains with checkpoints on `disk`, and plain progress on `console`.
  [[nodiscard]] experiment::RunEnd train_over(nn::FileSystem& disk, std::FILE* console);
  [[nodiscard]] experiment::RunEnd resume(const std::vector<std::string>& more = {}, std::stop_token stop = {},
                                          bool replan = false);

  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }  ///< of this object
  [[nodiscard]] std::filesystem::path run_directory() const;                           ///< of its one run
  /// All tensors of the newest checkpoint, by name.
  [[nodiscard]] std::map<std::string, std::vector<float>> tensors() const;
  /// Every record of the newest journal segment.
  [[nodiscard]] std::vector<core::JournalRecord> journal() const;

 private:
  [[nodiscard]] experiment::RunEnd train(const std::function<void(actors::Launch&)>& change, nn::FileSystem& disk,
                                         const report::ConsoleOptions& console);

  nn::Backend* backend_;
  std::filesystem::path directory_;
  std::vector<std::string> options_;
};

}  // namespace troupe::tests
