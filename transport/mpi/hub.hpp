/// MPI in this process, shared by its mpi endpoints. MPI knows only ranks, so a slot identifies each endpoint. All frames use one
/// communicator; an endpoint that polls for its own frames also stores those of the others. Only the module troupe_mpi.so contains
/// it.
///
/// Thread-safe (MPI_THREAD_MULTIPLE).
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "transport/fabric/fabric.hpp"
#include "transport/mpi/transfer_tags.hpp"

namespace troupe::transport {

/// One endpoint in the job.
struct MpiPlace {
  int rank = 0;
  std::uint32_t slot = 0;
  bool operator==(const MpiPlace&) const = default;
};

class MpiHub {
 public:
  /// A frame from an endpoint; an empty frame reports that there is no endpoint at `from`.
  struct SmallMessage {
    MpiPlace from;
    std::vector<std::byte> frame;
  };

  /// Initialises MPI unless it is initialised already. The first call is collective: every rank of the job must make it, and waits
  /// for the others. Errc::config: MPI does not start, or without threads. MPI is finalised when the process ends.
  [[nodiscard]] static core::Result<std::shared_ptr<MpiHub>> get();
  MpiHub(const MpiHub&) = delete;
  MpiHub& operator=(const MpiHub&) = delete;
  ~MpiHub();

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] const std::string& job() const noexcept { return job_; }  // unique; the same at every rank
  [[nodiscard]] MPI_Comm bulk() const noexcept { return bulk_; }
  [[nodiscard]] MPI_Comm sums() const noexcept { return sums_; }
  /// Whether this MPI library, as it runs here, takes addresses of CUDA devices.
  [[nodiscard]] static bool takes_device() noexcept;
  /// The same with the reason, for `troupe doctor`. MPI is not started for it; until MPI is started, Open MPI cannot say.
  [[nodiscard]] static DeviceSupport device_support();
  /// Skips MPI_Finalize at the end of the process, because it waits for every rank.
  void abandon() noexcept { finalise_ = false; }
  /// Keeps memory that MPI may read or write until the process ends.
  void keep(std::shared_ptr<void> memory);
  /// A tag for one transfer into this process from `rank`. A transfer that was cancelled keeps its tag: its message may still come.
  [[nodiscard]] int take_tag(int rank);
  void give_back_tag(int rank, int tag);

  [[nodiscard]] std::uint32_t join();
  void leave(std::uint32_t slot);  // once; informs the senders of frames that were not taken
  [[nodiscard]] bool is_here(std::uint32_t slot);

  /// wrap() makes the message for send(). MPI reads `bytes` until the request has ended. An empty frame reports a missing endpoint.
  [[nodiscard]] static std::vector<std::byte> wrap(MpiPlace from, MpiPlace to, std::span<const std::byte> frame);
  [[nodiscard]] MPI_Request send(int rank, const std::vector<std::byte>& bytes);
  /// Receives the frames that have arrived for all endpoints here, and moves this slot's to `out`. False: none for it.
  bool take(std::uint32_t slot, std::deque<SmallMessage>& out);
  /// A cancelled transfer into this process may still arrive. It is received and discarded, so that its sender gets its memory
  /// back.
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
  std::optional<TransferTags> tags_;  // from start() on
  std::uint32_t next_slot_ = 1;
  std::unordered_map<std::uint32_t, std::deque<SmallMessage>> messages_;  // by slot of the endpoints here
  std::deque<std::unique_ptr<Outgoing>> news_;
  std::vector<std::pair<int, int>> unwanted_;  // rank, tag
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace troupe::transport
