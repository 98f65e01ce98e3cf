// Direct reduce-scatter + allgather (Theano-MPI's alltoall-sum-allgather; Ma, Mao & Taylor 2016), chunk by chunk: a chunk's sum is sent at
// once, while later chunks arrive. asa16 rounds sent values to 16 bits.
//
// Two kinds of lanes; each handles every window-th chunk in its own memory. A lane of the own slice receives the chunk from every rank,
// sums, and sends the sum to every rank. A lane of another rank's slice sends the chunk there and receives its sum.
#include <vector>

#include "transport/exchange/collectives/task.hpp"

namespace troupe::exchange {
namespace {

using core::Slice;
using transport::TagKind;

class Asa final : public Task {
 public:
  Asa(OperationQueue& operations, const core::Kernels& kernels, Group group, CollectiveTask task, Done done)
      : Task(operations, kernels, std::move(group), std::move(task), std::move(done)),
        floats_(chunk_floats(task_.chunks.floats, task_.vector.size(), ranks())),
        halves_(task_.algorithm == Algorithm::asa16) {
    for (std::size_t r = 0; r < ranks(); ++r) slices_.push_back(core::slice_of(task_.vector.size(), r, ranks()));
  }

 private:
  /// A lane of the own slice.
  struct SumLane {
    std::vector<core::Span> parts;  // by rank, the own part empty
    std::vector<core::HalfSpan> half_parts;
    core::HalfSpan half_sum;
    core::Span sum;
    std::size_t missing = 0;  // parts, then confirmed sends of the sum
  };
  /// A lane of the slice of `rank`.
  struct PartLane {
    std::size_t rank = 0;
    core::HalfSpan half;
  };

  void begin() override {
    if (ranks() == 1) return kernels_.scale(task_.vector, task_.scale);
    sum_lanes_.resize(lanes_of(rank()));
    take_scratch(room());
    for (auto& lane : sum_lanes_) prepare(lane);
    for (const auto other : others())
      for (std::size_t i = 0; i < lanes_of(other); ++i)
        part_lanes_.push_back({other, halves_ ? scratch_.cut<std::uint16_t>(longest(other)) : core::HalfSpan{}});
    for (std::size_t i = 0; i < sum_lanes_.size(); ++i) collect(sum_lanes_[i], i);
    std::vector<std::size_t> chunks(ranks(), 0);  // chunks begun, by rank
    for (auto& lane : part_lanes_) give(lane, chunks[lane.rank]++);
  }

  [[nodiscard]] std::size_t lanes_of(std::size_t slice) const {
    return std::min(task_.chunks.window, chunks_of(slices_[slice], floats_));
  }
  /// Floats of the slice's longest chunk.
  [[nodiscard]] std::size_t longest(std::size_t slice) const { return std::min(floats_, slices_[slice].count); }

  /// Scratch bytes of all lanes.
  [[nodiscard]] std::size_t room() const {
    const auto own = longest(rank());
    if (!halves_) return sum_lanes_.size() * (ranks() - 1) * Scratch::room<float>(own);
    auto bytes = sum_lanes_.size() * (ranks() * Scratch::room<std::uint16_t>(own) + Scratch::room<float>(own));
    for (const auto other : others()) bytes += lanes_of(other) * Scratch::room<std::uint16_t>(longest(other));
    return bytes;
  }

  void prepare(SumLane& lane) {
    const auto own = longest(rank());
    if (halves_) {
      lane.half_parts.resize(ranks());
      lane.half_sum = scratch_.cut<std::uint16_t>(own);
      lane.sum = scratch_.cut<float>(own);
    }
    lane.parts.resize(ranks());
    for (const auto other : others()) {
      if (halves_)
        lane.half_parts[other] = scratch_.cut<std::uint16_t>(own);
      else
        lane.parts[other] = scratch_.cut<float>(own);
    }
  }

  // ---- the own slice

  void collect(SumLane& lane, std::size_t chunk) {
    const Slice part = chunk_of(slices_[rank()], chunk, floats_);
    if (part.count == 0) return;
    lane.missing = ranks() - 1;
    for (const auto other : others())
      receive(other, TagKind::scatter, chunk, memory(lane, other, part.count), [this, &lane, chunk] {
        if (--lane.missing == 0) sum(lane, chunk);
      });
  }

  transport::MemoryView memory(SumLane& lane, std::size_t from, std::size_t count) const {
    if (!halves_) return view(lane.parts[from].first(count));
    return half_view(lane.half_parts[from], count);
  }

  void sum(SumLane& lane, std::size_t chunk) {
    const Slice part = chunk_of(slices_[rank()], chunk, floats_);
    const core::Span own = at(part);
    transport::ConstMemoryView result = view(core::ConstSpan(own));
    if (halves_) {
      sum_halves(lane, own);
      result = half_view(lane.half_sum, own.size());
    } else {
      std::vector<core::Span> parts;
      for (std::size_t r = 0; r < ranks(); ++r) parts.push_back(r == rank() ? own : lane.parts[r].first(own.size()));
      kernels_.reduce_all(parts, task_.scale);
    }
    lane.missing = ranks() - 1;
    for (const auto other : others())
      send(other, TagKind::gather, chunk, result, [this, &lane, chunk] {
        if (--lane.missing == 0) collect(lane, chunk + sum_lanes_.size());
      });
  }

  /// Sums in float32, with the own part unrounded. Every rank, this one too, gets the same rounded result.
  void sum_halves(SumLane& lane, core::Span own) {
    const core::Span sum = lane.sum.first(own.size());
    for (std::size_t r = 0; r < ranks(); ++r) {
      const auto part = lane.half_parts[r];
      if (r == rank() && r == 0)
        kernels_.copy(sum, own);
      else if (r == rank())
        kernels_.axpy(sum, 1, own);
      else if (r == 0)
        kernels_.widen(sum, part.first(own.size()), task_.half);
      else
        kernels_.add_wide(sum, part.first(own.size()), task_.half);
    }
    kernels_.scale(sum, task_.scale);
    const auto rounded = lane.half_sum.first(own.size());
    kernels_.narrow(rounded, sum, task_.half);
    kernels_.widen(own, rounded, task_.half);
  }

  // ---- slices of other ranks

  void give(PartLane& lane, std::size_t chunk) {
    const Slice part = chunk_of(slices_[lane.rank], chunk, floats_);
    if (part.count == 0) return;
    transport::ConstMemoryView mine = view(core::ConstSpan(at(part)));
    if (halves_) {
      kernels_.narrow(lane.half.first(part.count), at(part), task_.half);
      mine = half_view(lane.half, part.count);
    }
    send(lane.rank, TagKind::scatter, chunk, mine, [this, &lane, chunk] { take(lane, chunk); });
  }

  void take(PartLane& lane, std::size_t chunk) {
    const core::Span part = at(chunk_of(slices_[lane.rank], chunk, floats_));
    const auto memory = halves_ ? half_view(lane.half, part.size()) : view(part);
    receive(lane.rank, TagKind::gather, chunk, memory, [this, &lane, chunk, part] {
      if (halves_) kernels_.widen(part, lane.half.first(part.size()), task_.half);
      give(lane, chunk + lanes_of(lane.rank));
    });
  }

  [[nodiscard]] transport::MemoryView half_view(core::HalfSpan halves, std::size_t count) const {
    return {reinterpret_cast<std::byte*>(halves.data()), count * sizeof(std::uint16_t), kernels_.space()};
  }

  const std::size_t floats_;  // of a chunk
  const bool halves_;
  std::vector<Slice> slices_;  // by rank
  std::vector<SumLane> sum_lanes_;
  std::vector<PartLane> part_lanes_;
};

}  // namespace

std::unique_ptr<Collective> make_asa(OperationQueue& operations, const core::Kernels& kernels, Group group,
                                     CollectiveTask task, Collective::Done done) {
  return std::make_unique<Asa>(operations, kernels, std::move(group), std::move(task), std::move(done));
}

}  // namespace troupe::exchange
