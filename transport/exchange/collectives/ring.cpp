// Reduce-scatter and allgather around a ring (Patarasuk & Yuan 2009), chunk by chunk: one chunk is summed while others travel.
//
// Step s of n − 1: send a chunk of slice (rank − s) to the next rank, receive one of slice (rank − s − 1) from the previous rank, and add.
// Then the rank has the whole sum of slice rank + 1; in n − 1 further steps the sums travel around the ring.
#include <vector>

#include "transport/exchange/collectives/task.hpp"

namespace troupe::exchange {
namespace {

using core::Slice;
using transport::TagKind;

class Ring final : public Task {
 public:
  Ring(OperationQueue& operations, const core::Kernels& kernels, Group group, CollectiveTask task, Done done)
      : Task(operations, kernels, std::move(group), std::move(task), std::move(done)),
        floats_(chunk_floats(task_.chunks.floats, task_.vector.size(), ranks())) {}

 private:
  /// Handles every window-th chunk of all slices.
  struct Lane {
    core::Span received;
    std::size_t chunk = 0;
    std::size_t step = 0;     // 0 … n − 2: summing; n − 1 … 2n − 3: gathering
    std::size_t missing = 0;  // the step's send and receive
  };

  void begin() override {
    if (ranks() == 1) return kernels_.scale(task_.vector, task_.scale);
    const auto longest = core::slice_of(task_.vector.size(), 0, ranks());
    chunks_ = chunks_of(longest, floats_);
    lanes_.resize(std::min(task_.chunks.window, chunks_));
    const auto most = std::min(floats_, longest.count);
    take_scratch(lanes_.size() * Scratch::room<float>(most));
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i].received = scratch_.cut<float>(most);
      lanes_[i].chunk = i;
      step(lanes_[i]);
    }
  }

  /// The lane's chunk of slice `rank + places`.
  [[nodiscard]] core::Span chunk(const Lane& lane, std::size_t places) const {
    const auto slice = core::slice_of(task_.vector.size(), (rank() + places) % ranks(), ranks());
    return at(chunk_of(slice, lane.chunk, floats_));
  }

  void step(Lane& lane) {
    const std::size_t n = ranks();
    const bool summing = lane.step < n - 1;
    const std::size_t s = summing ? lane.step : lane.step - (n - 1);
    // n − s is −s around the ring; the gathering steps use the next slice.
    const core::Span out = chunk(lane, n - s + (summing ? 0 : 1));
    const core::Span in = chunk(lane, n - s + (summing ? n - 1 : 0));
    const auto kind = summing ? TagKind::scatter : TagKind::gather;
    const std::size_t message = s * chunks_ + lane.chunk;
    lane.missing = 2;
    // Both sides know that a shorter slice lacks this chunk: it is not sent.
    if (out.empty())
      --lane.missing;
    else
      send((rank() + 1) % n, kind, message, view(core::ConstSpan(out)), [this, &lane] { half_done(lane); });
    if (in.empty())
      --lane.missing;
    else if (summing)
      receive((rank() + n - 1) % n, kind, message, view(lane.received.first(in.size())), [this, &lane, in] {
        kernels_.axpy(in, 1, lane.received.first(in.size()));
        half_done(lane);
      });
    else
      receive((rank() + n - 1) % n, kind, message, view(in), [this, &lane] { half_done(lane); });
    if (lane.missing == 0) next(lane);
  }

  void half_done(Lane& lane) {
    if (--lane.missing == 0) next(lane);
  }

  void next(Lane& lane) {
    const std::size_t n = ranks();
    if (++lane.step == n - 1) kernels_.scale(chunk(lane, 1), task_.scale);
    if (lane.step == 2 * (n - 1)) {
      lane.chunk += lanes_.size();
      lane.step = 0;
      if (lane.chunk >= chunks_) return;
    }
    step(lane);
  }

  const std::size_t floats_;  // of a chunk
  std::size_t chunks_ = 0;    // of the longest slice
  std::vector<Lane> lanes_;
};

}  // namespace

std::unique_ptr<Collective> make_ring(OperationQueue& operations, const core::Kernels& kernels, Group group,
                                      CollectiveTask task, Collective::Done done) {
  return std::make_unique<Ring>(operations, kernels, std::move(group), std::move(task), std::move(done));
}

}  // namespace troupe::exchange
