/// The Job over MPI (transport/mpi/job.hpp). Only the module troupe_mpi.so contains it. Thread rule: one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/mpi/hub.hpp"
#include "transport/mpi/job.hpp"

namespace troupe::transport {

class MpiJob final : public Job {
 public:
  /// Initialises MPI unless it is initialised already. Errors: those of MpiHub::get().
  [[nodiscard]] static core::Result<std::unique_ptr<Job>> join();

  [[nodiscard]] std::size_t rank() const noexcept override { return static_cast<std::size_t>(hub_->rank()); }
  [[nodiscard]] std::size_t size() const noexcept override { return static_cast<std::size_t>(hub_->size()); }
  [[nodiscard]] core::Result<std::string> broadcast(std::string text, const GiveUp& give_up) override;
  [[nodiscard]] core::Result<std::vector<std::string>> gather(std::string text, const GiveUp& give_up) override;
  [[nodiscard]] core::Result<void> read_together(const FilePart& part, std::size_t piece, const TakeBytes& take,
                                                 const GiveUp& give_up) override;
  void abandon() noexcept override { hub_->abandon(); }

 private:
  struct Words;
  explicit MpiJob(std::shared_ptr<MpiHub> hub);
  /// The largest `value` of all ranks.
  [[nodiscard]] core::Result<std::uint64_t> largest(std::uint64_t value, const GiveUp& give_up);
  [[nodiscard]] core::Result<void> finish(const std::shared_ptr<Words>& words, const GiveUp& give_up);

  std::shared_ptr<MpiHub> hub_;
  MPI_Comm words_ = MPI_COMM_NULL;
};

}  // namespace troupe::transport
