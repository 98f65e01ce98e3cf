/// The fabric of the endpoint `mpi`: peers are the job's ranks. Frames and bulk transfers are messages of two duplicated
/// communicators. A bulk transfer has its own MPI tag and goes straight into the posted memory. Only the module troupe_mpi.so
/// contains it. Thread rule: that of Fabric.
///
/// MPI counts in `int`: a longer sum is cut into pieces, in the same way at all ranks. Transfers are cut into shorter pieces
/// (kMaxPieceBytes). All pieces of a transfer have its one tag and match in their order.
///
/// Open MPI has no completion descriptor: while nothing arrives, wait() sleeps for 0, 50 µs, 1 ms and finally 5 ms. MPI cannot
/// cancel a send: a send to a peer that has stopped keeps its memory. The loss of a rank ends the whole job.
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
  [[nodiscard]] bool takes_device() const noexcept override { return hub_->takes_device(); }
  [[nodiscard]] core::Result<WireId> open(std::string_view address) override;
  void send_frame(WireId wire, std::span<const std::byte> frame) override;
  [[nodiscard]] std::uint64_t receive(WireId wire, MemoryView memory, TransferId transfer) override;
  void send(WireId wire, std::uint64_t channel, ConstMemoryView memory, TransferId transfer) override;
  void close(WireId wire) override;
  bool progress(FabricEvents& events) override;
  [[nodiscard]] bool prepare_to_wait() override { return messages_.empty(); }
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
    Clock::time_point give_up{};  // closing: end of the grace time for receives
  };
  /// A pending operation of MPI; its request has the same index in requests_.
  struct Task {
    enum class Kind : std::uint8_t { frame, send, receive, sum } kind;
    WireId wire{};
    TransferId transfer{};
    std::size_t size = 0;
    int tag = 0;
    bool given_up = false;
    std::unique_ptr<std::vector<std::byte>> frame{};
  };
  /// A transfer or sum with pieces that have not ended.
  struct Cut {
    std::size_t pieces_left = 0;
    bool whole = true;  // so far
  };

  MpiFabric(std::shared_ptr<MpiHub> hub, int wake_fd, std::size_t piece);
  [[nodiscard]] std::size_t members() const noexcept override { return static_cast<std::size_t>(hub_->size()); }
  void sum(core::Span vector, TransferId transfer) override;
  void begin(Task task, MPI_Request request);
  /// Posts `size` bytes or floats of `task`, at most `piece` at a time: calls `post` with each piece's offset and length.
  template <class Post>
  void begin_pieces(Task task, std::size_t size, std::size_t piece, const Post& post);
  bool end_tasks(FabricEvents& events);
  bool read_messages(FabricEvents& events);
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
  std::vector<int> finished_;  // scratch of end_tasks()
  std::vector<MPI_Status> statuses_;
  std::deque<MpiHub::SmallMessage> messages_;
  std::atomic<unsigned> idle_{0};  // calls of wait() since the last event
};

}  // namespace troupe::transport
