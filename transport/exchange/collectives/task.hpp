/// What the algorithms have in common: posting to ranks in place of peers, counting what is lent, and ending once. Internal to
/// exchange/.
///
/// An algorithm's whole logic stands in the continuations of its operations. So it has ended when nothing is posted any more: then
/// either all was done, or something failed and the rest was cancelled.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "transport/exchange/collectives/collective.hpp"
#include "transport/exchange/reduce.hpp"

namespace troupe::exchange {

/// Chunk `index` of a slice.
[[nodiscard]] transport::Slice chunk_of(const transport::Slice& slice, std::size_t index, std::size_t chunk_floats);
[[nodiscard]] std::size_t chunks_of(const transport::Slice& slice, std::size_t chunk_floats);
/// `wanted`, or more where that would give a tag more chunks than it can count.
[[nodiscard]] std::size_t chunk_floats(std::size_t wanted, std::size_t floats, std::size_t ranks);

class Task : public Collective {
 public:
  Task(Courier& courier, const core::Kernels& kernels, Group group, CollectiveTask task, Done done);
  void start() final;
  [[nodiscard]] std::optional<std::size_t> last_heard() const final { return last_; }
  void cancel() final { fail({core::Errc::interrupted, "the exchange was given up"}); }

 protected:
  using Then = std::function<void()>;
  using Kind = transport::TagKind;

  /// Posts the first operations.
  virtual void begin() = 0;

  /// `then` runs when the operation is done, and not after a failure.
  void send(std::size_t rank, Kind kind, std::size_t chunk, transport::ConstMemoryView memory, Then then);
  void receive(std::size_t rank, Kind kind, std::size_t chunk, transport::MemoryView memory, Then then);
  void sum(core::Span vector, Then then);  // over all members, by the library
  void fail(core::Error error);

  /// Makes scratch_ so large. Once.
  void take_scratch(std::size_t bytes);
  [[nodiscard]] core::Span at(const transport::Slice& part) const {
    return task_.vector.subspan(part.offset, part.count);
  }
  [[nodiscard]] std::size_t ranks() const noexcept { return group_.size(); }
  [[nodiscard]] std::size_t rank() const noexcept { return group_.rank; }
  /// The others, from the next one on: not everyone turns to rank 0 first.
  [[nodiscard]] std::vector<std::size_t> others() const;

  Courier& courier_;
  const core::Kernels& kernels_;
  const Group group_;
  const CollectiveTask task_;
  Scratch::Piece scratch_;  // until it ends

 private:
  void hear(std::size_t rank);
  [[nodiscard]] core::Error lost_by(const transport::Completion& completion);
  [[nodiscard]] transport::Tag tag(Kind kind, std::size_t chunk) const;
  [[nodiscard]] Courier::Done continuation(Then then);
  void settle();

  Done done_;
  std::set<Courier::Ticket> tickets_;  // of what is posted
  std::set<std::size_t> heard_;        // ranks of which a message has come
  std::set<std::size_t> awaited_;      // ranks of which none has
  std::optional<std::size_t> last_;
  std::optional<core::Error> error_;
  bool beginning_ = true;
};

[[nodiscard]] std::unique_ptr<Collective> make_asa(Courier&, const core::Kernels&, Group, CollectiveTask,
                                                   Collective::Done);
[[nodiscard]] std::unique_ptr<Collective> make_ring(Courier&, const core::Kernels&, Group, CollectiveTask,
                                                    Collective::Done);
[[nodiscard]] std::unique_ptr<Collective> make_shared_memory(Courier&, const core::Kernels&, Group, CollectiveTask,
                                                             Collective::Done);
[[nodiscard]] std::unique_ptr<Collective> make_hierarchical(Courier&, const core::Kernels&, Group, CollectiveTask,
                                                            Collective::Done);
[[nodiscard]] std::unique_ptr<Collective> make_library(Courier&, const core::Kernels&, Group, CollectiveTask,
                                                       Collective::Done);
[[nodiscard]] std::unique_ptr<Collective> make_broadcast(Courier&, const core::Kernels&, Group, CollectiveTask,
                                                         Collective::Done);

}  // namespace troupe::exchange
