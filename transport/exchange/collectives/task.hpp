/// The common part of the algorithms: addresses ranks instead of peers, counts the posted operations, and ends once. Internal to exchange/.
///
/// The logic of an algorithm is in the continuations of its operations. It ends when no operation is posted: then all is done, or an
/// operation failed and the others were cancelled.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/buffer.hpp"
#include "transport/exchange/collectives/collective.hpp"

namespace troupe::exchange {

/// Chunk `index` of a slice.
[[nodiscard]] core::Slice chunk_of(const core::Slice& slice, std::size_t index, std::size_t chunk_floats);
[[nodiscard]] std::size_t chunks_of(const core::Slice& slice, std::size_t chunk_floats);
/// `wanted`, or more where a tag cannot number that many chunks.
[[nodiscard]] std::size_t chunk_floats(std::size_t wanted, std::size_t floats, std::size_t ranks);

class Task : public Collective {
 public:
  Task(OperationQueue& operations, const core::Kernels& kernels, Group group, CollectiveTask task, Done done);
  void start() final;
  [[nodiscard]] std::optional<std::size_t> last_heard() const final { return last_; }
  void cancel() final { fail({core::Errc::interrupted, "the exchange was given up"}); }

 protected:
  using Then = std::function<void()>;
  using Kind = transport::TagKind;

  /// Posts the first operations.
  virtual void begin() = 0;

  /// `then` runs when the operation is done, but not after a failure.
  void send(std::size_t rank, Kind kind, std::size_t chunk, transport::ConstMemoryView memory, Then then);
  void receive(std::size_t rank, Kind kind, std::size_t chunk, transport::MemoryView memory, Then then);
  void sum(core::Span vector, Then then);  // over all members, by the MPI library
  void fail(core::Error error);

  /// Allocates scratch_. Call once.
  void take_scratch(std::size_t bytes);
  /// The memory of the kernels, for messages.
  [[nodiscard]] transport::MemoryView view(core::Span floats) const {
    return transport::view_of(floats, kernels_.space());
  }
  [[nodiscard]] transport::ConstMemoryView view(core::ConstSpan floats) const {
    return transport::view_of(floats, kernels_.space());
  }
  [[nodiscard]] core::Span at(const core::Slice& part) const { return task_.vector.subspan(part.offset, part.count); }
  [[nodiscard]] std::size_t ranks() const noexcept { return group_.size(); }
  [[nodiscard]] std::size_t rank() const noexcept { return group_.rank; }
  /// The other ranks, beginning with the next one, so that members do not all address rank 0 first.
  [[nodiscard]] std::vector<std::size_t> others() const;

  OperationQueue& operations_;
  const core::Kernels& kernels_;
  const Group group_;
  const CollectiveTask task_;
  Scratch::Piece scratch_;  // held until the end

 private:
  void hear(std::size_t rank);
  [[nodiscard]] core::Error lost_by(const transport::Completion& completion);
  [[nodiscard]] transport::Tag tag(Kind kind, std::size_t chunk) const;
  [[nodiscard]] OperationQueue::Done continuation(Then then);
  void settle();

  Done done_;
  std::set<OperationQueue::Ticket> tickets_;  // of the posted operations
  std::set<std::size_t> heard_;               // ranks that have sent a message
  std::set<std::size_t> awaited_;             // ranks that have not
  std::optional<std::size_t> last_;
  std::optional<core::Error> error_;
  bool beginning_ = true;
};

[[nodiscard]] std::unique_ptr<Collective> make_asa(OperationQueue&, const core::Kernels&, Group, CollectiveTask,
                                                   Collective::Done);
[[nodiscard]] std::unique_ptr<Collective> make_ring(OperationQueue&, const core::Kernels&, Group, CollectiveTask,
                                                    Collective::Done);
[[nodiscard]] std::unique_ptr<Collective> make_shared_memory(OperationQueue&, const core::Kernels&, Group,
                                                             CollectiveTask, Collective::Done);
[[nodiscard]] std::unique_ptr<Collective> make_hierarchical(OperationQueue&, const core::Kernels&, Group,
                                                            CollectiveTask, Collective::Done);
[[nodiscard]] std::unique_ptr<Collective> make_library(OperationQueue&, const core::Kernels&, Group, CollectiveTask,
                                                       Collective::Done);
[[nodiscard]] std::unique_ptr<Collective> make_broadcast(OperationQueue&, const core::Kernels&, Group, CollectiveTask,
                                                         Collective::Done);

}  // namespace troupe::exchange
