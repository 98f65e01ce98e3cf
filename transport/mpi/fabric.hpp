/// The fabric behind the endpoint `mpi`: peers are the job's ranks. Frames and bulk transfers are messages of two
/// duplicated communicators; a bulk transfer has an MPI tag of its own and goes straight into the posted memory. Only
/// the module troupe_mpi.so holds this.
///
/// MPI counts in `int`: a longer sum is cut into pieces, which all ranks cut alike. Transfers are, too, and into shorter ones
/// (kMaxPieceBytes). Pieces of a transfer have its one tag, and match in their order.
///
/// Open MPI has no completion descriptor: wait() sleeps for 0, 50 µs, 1 ms and at last 5 ms while nothing comes. MPI cannot take
/// back a send; one whose peer has stopped keeps its memory, and a rank that is lost ends the whole job.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/error.hpp"
#include "transport/fabric/fabric.hpp"
#include "transport/mpi/hub.hpp"

namespace troupe::transport {

class MpiFabric final : public Fabric, private NativeSum {
 public:
  [[nodiscard]] static core::Result<std::unique_ptr<Fabric>> make(const FabricOptions& options);
  ~MpiFabric() override;

  [[nodiscard]] const std::string& address() const noexcept override { return address_; }
  [[nodiscard]] std::size_t max_transfer_bytes() const noexcept override {
    return std::numeric_limits<std::ptrdiff_t>::max();
  }
  [[nodiscard]] core::Result<WireId> open(std::string_view address) override;
  void send_frame(WireId wire, std::span<const std::byte> frame) override;
  [[nodiscard]] std::uint64_t receive(WireId wire, MemoryView memory, TransferId transfer) override;
  void send(WireId wire, std::uint64_t channel, ConstMemoryView memory, TransferId transfer) override;
  void close(WireId wire) override;
  bool progress(FabricEvents& events) override;
  [[nodiscard]] bool prepare_to_wait() override { return letters_.empty(); }
  void wait() noexcept override;
  void wake() noexcept override;
  void shutdown(FabricEvents& events) noexcept override;
  [[nodiscard]] NativeSum* native_sum() noexcept override { return this; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Wire {
    MpiPlace to;
    bool gone = false;
    bool closing = false;
    Clock::time_point give_up{};  // closing: the end of the grace time for receives
  };
  /// What MPI has under way; its request stands at the same place in requests_.
  struct Task {
    enum class Kind : std::uint8_t { frame, send, receive, sum } kind;
    WireId wire{};
    TransferId transfer{};
    std::size_t size = 0;
    int tag = 0;
    bool given_up = false;
    std::unique_ptr<std::vector<std::byte>> frame{};
  };
  /// A transfer or sum whose pieces have not all ended.
  struct Cut {
    std::size_t pieces_left = 0;
    bool whole = true;  // so far
  };

  MpiFabric(std::shared_ptr<MpiHub> hub, int wake_fd, std::size_t piece);
  [[nodiscard]] std::size_t members() const noexcept override { return static_cast<std::size_t>(hub_->size()); }
  void sum(core::Span vector, TransferId transfer) override;
  void begin(Task task, MPI_Request request);
  /// Posts `size` bytes or floats of `task`, at most `piece` at a time: `post` is told where each begins and how long it is.
  template <class Post>
  void begin_pieces(Task task, std::size_t size, std::size_t piece, const Post& post);
  bool end_tasks(FabricEvents& events);
  bool read_letters(FabricEvents& events);
  void give_up_receives();

  const std::shared_ptr<MpiHub> hub_;
  const MpiPlace self_;
  const std::string address_;
  const int wake_fd_;
  const std::size_t piece_;
  std::uint64_t next_wire_ = 1;
  std::unordered_map<WireId, Wire> wires_;
  std::unordered_map<TransferId, Cut> cuts_;
  std::vector<Task> tasks_;
  std::vector<MPI_Request> requests_;
  std::vector<int> finished_;  // scratch
  std::vector<MPI_Status> statuses_;
  std::deque<MpiHub::Letter> letters_;
  std::atomic<unsigned> idle_{0};  // calls of wait() since something happened
};

}  // namespace troupe::transport
