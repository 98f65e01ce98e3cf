/// Reads the files of a run for the oracle: docs/formats/{journal,metrics,summary,checkpoint}.md. Errors are Errc::corrupt naming the
/// file, or those of reading it.
#pragma once

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "tests/histories/accounts.hpp"
#include "tests/histories/reports.hpp"

namespace troupe::histories {

/// The journal, oldest segment first.
[[nodiscard]] core::Result<std::vector<Segment>> read_segments(const std::string& run);

/// The sessions of metrics.jsonl.
[[nodiscard]] core::Result<std::vector<Reported>> read_reports(const std::string& run);

/// Follows a running run's progress in metrics.jsonl: each look() continues where the last one stopped.
class Progress {
 public:
  explicit Progress(const std::string& run);
  /// Reads the lines written since the last look().
  void look();
  [[nodiscard]] std::size_t sessions() const noexcept { return sessions_; }
  /// Of the newest session, over all workers.
  [[nodiscard]] std::uint64_t steps() const;
  /// The newest epoch that was reported.
  [[nodiscard]] std::uint32_t epoch() const noexcept { return epoch_; }

 private:
  std::ifstream file_;
  std::string line_;  // the unfinished last line
  std::size_t sessions_ = 0;
  std::map<std::uint32_t, std::uint64_t> steps_;  // by worker
  std::uint32_t epoch_ = 0;
};

/// Paths of temporary files anywhere in the directory.
[[nodiscard]] std::vector<std::string> temporaries(const std::string& run);

}  // namespace troupe::histories
