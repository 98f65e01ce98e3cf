/// MPI in this process, shared by its mpi endpoints: they are told apart by slots, because MPI knows ranks only. Frames
/// of all go over one communicator, and whoever looks for its own takes the others' in for them. Only the module
/// troupe_mpi.so holds this.
///
/// Thread-safe (MPI_THREAD_MULTIPLE).
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace troupe::transport {

/// One endpoint in the job.
struct MpiPlace {
  int rank = 0;
  std::uint32_t slot = 0;
  bool operator==(const MpiPlace&) const = default;
};

class MpiHub {
 public:
  /// A frame, or (empty) the news that nobody is at the place it came from.
  struct Letter {
    MpiPlace from;
    std::vector<std::byte> frame;
  };

  /// Initialises MPI where nobody has. The first call is collective: every rank of the job makes it at some time, and
  /// waits for the others. Errc::config when MPI has no threads. MPI is finalised when the process ends.
  [[nodiscard]] static core::Result<std::shared_ptr<MpiHub>> get();
  MpiHub(const MpiHub&) = delete;
  MpiHub& operator=(const MpiHub&) = delete;
  ~MpiHub();

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] const std::string& job() const noexcept { return job_; }  // the same at every rank, unique
  [[nodiscard]] MPI_Comm bulk() const noexcept { return bulk_; }
  [[nodiscard]] MPI_Comm sums() const noexcept { return sums_; }
  /// MPI will not be finalised when the process ends: that waits for every rank.
  void abandon() noexcept { finalise_ = false; }
  /// Memory that MPI may read or write until the process ends.
  void keep(std::shared_ptr<void> memory);
  /// A tag for one transfer into this process. Used again after 2^30.
  [[nodiscard]] int next_tag();

  [[nodiscard]] std::uint32_t join();
  void leave(std::uint32_t slot);  // once; senders of letters that were not taken hear of it
  [[nodiscard]] bool is_here(std::uint32_t slot);

  /// Begins sending; `bytes` is what MPI reads until the request has ended. An empty frame is the news.
  [[nodiscard]] static std::vector<std::byte> wrap(MpiPlace from, MpiPlace to, std::span<const std::byte> frame);
  [[nodiscard]] MPI_Request send(int rank, const std::vector<std::byte>& bytes);
  /// Takes in what has come, for everybody here; moves this slot's letters to `out`. False: none for it.
  bool take(std::uint32_t slot, std::deque<Letter>& out);
  /// A transfer into this process that was given up may come all the same: it is received and thrown away, so that its
  /// sender gets its memory back.
  void throw_away(int rank, int tag);

 private:
  struct Outgoing {
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  MpiHub() = default;
  [[nodiscard]] core::Result<void> start();
  void take_in();
  void send_news(MpiPlace to, std::uint32_t about);

  std::atomic<bool> finalise_ = false;  // MPI was initialised here
  int rank_ = 0, size_ = 1;
  std::string job_;
  MPI_Comm frames_ = MPI_COMM_NULL, bulk_ = MPI_COMM_NULL, sums_ = MPI_COMM_NULL;

  std::mutex mutex_;
  int next_tag_ = 0;
  std::uint32_t next_slot_ = 1;
  std::unordered_map<std::uint32_t, std::deque<Letter>> letters_;  // by slot, of those that are here
  std::deque<std::unique_ptr<Outgoing>> news_;
  std::vector<std::pair<int, int>> unwanted_;  // rank, tag
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace troupe::transport
