/// Copies of a data set's files on the hosts of a job, for `data.stage`: the ranks read them together through MPI-IO, and each writes the part
/// that it has read into the copies on its host. Thread rule: the main thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "transport/mpi/job.hpp"

namespace troupe::apps {

/// What rank 0 asks of all ranks. Without files: nothing.
struct StageOrder {
  std::string directory{};           // of the copies: the same name on each host, new and secret
  std::vector<std::string> files{};  // that are copied, under their own names
};

/// The ranks of one host, in their order.
struct HostPart {
  std::size_t rank = 0;  // of this process among them
  std::size_t ranks = 1;
};

/// The copies on this host; the first of its ranks removes them.
class StagedFiles {
 public:
  /// Collective: every rank calls it with the same order. Errc::io: a file cannot be read, and is named; no_space. Every rank takes part until
  /// the end, also after an error of its own. `patience`: for the messages between ranks before each file is read.
  [[nodiscard]] static core::Result<StagedFiles> read(transport::Job& job, const StageOrder& order,
                                                      const HostPart& part, std::chrono::seconds patience);
  StagedFiles(StagedFiles&& other) noexcept;
  StagedFiles& operator=(StagedFiles&&) = delete;
  ~StagedFiles();

 private:
  StagedFiles(std::string directory, bool removes) : directory_(std::move(directory)), removes_(removes) {}
  std::string directory_;
  bool removes_;
};

/// A directory for copies in `parent`, with a name that is used nowhere else.
[[nodiscard]] std::string stage_directory(const std::string& parent);

}  // namespace troupe::apps
