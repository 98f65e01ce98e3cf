/// The processes of a run under mpirun or srun: rank 0 leads, the others are nodes as in `troupe node` until rank 0 releases them. They
/// exchange their addresses over MPI (transport/mpi/job.hpp). Between hosts the control plane uses a certificate that rank 0 creates for
/// the run.
///
/// One thread, the main one; created before other threads, except those that wait for signals.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "apps/job/addresses.hpp"
#include "apps/job/staging.hpp"
#include "apps/job_environment.hpp"
#include "transport/mpi/job.hpp"
#include "transport/security/run_identity.hpp"

namespace troupe::apps {

class Job {
 public:
  /// Returns when every rank has joined. Errc::config: this build or host has no MPI, or not the launcher's MPI.
  [[nodiscard]] static core::Result<std::unique_ptr<Job>> join(const JobEnvironment& environment);
  /// Without dismiss() it sends nothing to the other ranks: they are lost, and the launcher ends them.
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  [[nodiscard]] std::size_t rank() const noexcept { return job_->rank(); }
  [[nodiscard]] std::size_t size() const noexcept { return job_->size(); }
  [[nodiscard]] const std::string& launcher() const noexcept { return launcher_; }
  /// Rank 0: the ranks on its host, itself included.
  [[nodiscard]] std::size_t ranks_here() const;

  /// Ranks 1, 2, …, for rank 0 to connect to.
  struct Nodes {
    std::vector<std::string> names{};  // "host:port"
    security::TlsFiles tls{};          // of this process; none on one host
  };
  /// Rank 0, once: makes the other ranks nodes, after all ranks have read the files of `stage` together. Returns their errors; Errc::timeout.
  [[nodiscard]] core::Result<Nodes> recruit(const StageOrder& stage = {});
  /// Rank 0, last: releases the other ranks, with exit code 0. After an outcome that indicates a lost rank it sends nothing: they are lost.
  void dismiss(const core::Result<void>& outcome);

  /// Any thread: removes the copies of files that this process is to remove, also while they are made. For a process that ends at once.
  void remove_copies();

  /// Ranks above 0: a node until rank 0 releases it. Errc::peer_lost: rank 0 is lost.
  [[nodiscard]] core::Result<void> serve();

 private:
  struct Order;
  Job(std::unique_ptr<transport::Job> job, std::string launcher)
      : job_(std::move(job)), launcher_(std::move(launcher)) {}
  [[nodiscard]] core::Result<void> meet();
  [[nodiscard]] core::Result<void> be_node(const Order& order);
  [[nodiscard]] core::Result<void> read_together(const Order& order);

  std::unique_ptr<transport::Job> job_;
  const std::string launcher_;
  std::vector<RankHost> hosts_;  // at rank 0, by rank
  std::unique_ptr<security::MemoryFiles> certificates_;
  std::optional<StagedFiles> staged_;
  std::mutex copies_mutex_;
  std::string copies_;  // their directory, if this process removes it; guarded by copies_mutex_
  std::atomic<std::chrono::steady_clock::time_point> give_up_ =
      std::chrono::steady_clock::time_point::max();  // set by the node's thread
  bool over_ = false;
};

}  // namespace troupe::apps
