/// The processes of a run that mpirun or srun has started: rank 0 leads, the others are nodes as `troupe node` makes them, until it
/// lets them go. They find each other by words over MPI (transport/mpi/job.hpp); between hosts the control plane has a certificate that
/// rank 0 makes for the run.
///
/// One thread, the main one; made before others, but for those that wait for signals.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "apps/job/addresses.hpp"
#include "apps/job_environment.hpp"
#include "transport/security/run_identity.hpp"
#include "transport/mpi/job.hpp"

namespace troupe::apps {

class Job {
 public:
  /// Returns when every rank has come. Errc::config: this build or this host has no MPI, or not the launcher's.
  [[nodiscard]] static core::Result<std::unique_ptr<Job>> join(const JobEnvironment& environment);
  /// Without a word to the others: they are lost then, and the launcher ends them.
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  [[nodiscard]] std::size_t rank() const noexcept { return job_->rank(); }
  [[nodiscard]] std::size_t size() const noexcept { return job_->size(); }
  [[nodiscard]] const std::string& launcher() const noexcept { return launcher_; }

  /// Of ranks 1, 2, …, to connect to.
  struct Nodes {
    std::vector<std::string> names{};  // "host:port"
    security::TlsFiles tls{};          // of this process; none on one host
  };
  /// Rank 0, once: makes nodes of the others. Their errors, and Errc::timeout.
  [[nodiscard]] core::Result<Nodes> recruit();
  /// Rank 0, last: lets the others go, with exit code 0. When they, or one of them, may not hear it any more, they are lost.
  void dismiss(const core::Result<void>& outcome);

  /// Ranks above 0: a node until rank 0 says otherwise. Errc::peer_lost: it is gone.
  [[nodiscard]] core::Result<void> serve();

 private:
  struct Order;
  Job(std::unique_ptr<transport::Job> job, std::string launcher)
      : job_(std::move(job)), launcher_(std::move(launcher)) {}
  [[nodiscard]] core::Result<void> meet();
  [[nodiscard]] core::Result<void> be_node(const Order& order);

  std::unique_ptr<transport::Job> job_;
  const std::string launcher_;
  std::vector<RankHost> hosts_;  // at rank 0, by rank
  std::unique_ptr<security::MemoryFiles> certificates_;
  std::atomic<std::chrono::steady_clock::time_point> give_up_ =
      std::chrono::steady_clock::time_point::max();  // set by the node
  bool over_ = false;
};

}  // namespace troupe::apps
