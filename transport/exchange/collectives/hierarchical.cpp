// Sums inside each host, one exchange between hosts, broadcast inside each host. A host's first member is its leader.
#include <algorithm>
#include <vector>

#include "transport/exchange/collectives/task.hpp"

namespace troupe::exchange {
namespace {

using core::Slice;
using transport::TagKind;

/// Rank 0 of the group receives the vectors and sums x_0 + x_1 + …; the others only send.
class SumAtFirst final : public Task {
 public:
  SumAtFirst(OperationQueue& operations, const core::Kernels& kernels, Group group, CollectiveTask task, Done done)
      : Task(operations, kernels, std::move(group), std::move(task), std::move(done)),
        floats_(chunk_floats(task_.chunks.floats, task_.vector.size(), ranks())) {}

 private:
  struct Lane {
    std::vector<core::Span> parts;  // by rank, the own part empty
    std::size_t missing = 0;
  };

  void begin() override {
    const auto window = std::min(task_.chunks.window, chunks_of(whole(), floats_));
    if (rank() == 0) prepare(window);
    for (std::size_t chunk = 0; chunk < window; ++chunk) rank() == 0 ? collect(chunk) : give(chunk, window);
  }

  [[nodiscard]] Slice whole() const { return {0, task_.vector.size()}; }

  void prepare(std::size_t window) {
    const auto most = std::min(floats_, task_.vector.size());
    take_scratch(window * (ranks() - 1) * Scratch::room<float>(most));
    lanes_.assign(window, {.parts = std::vector<core::Span>(ranks())});
    for (auto& lane : lanes_)
      for (const auto other : others()) lane.parts[other] = scratch_.cut<float>(most);
  }

  void give(std::size_t chunk, std::size_t window) {
    const core::ConstSpan part = at(chunk_of(whole(), chunk, floats_));
    if (part.empty()) return;
    send(0, TagKind::scatter, chunk, view(part), [=, this] { give(chunk + window, window); });
  }

  void collect(std::size_t chunk) {
    const core::Span own = at(chunk_of(whole(), chunk, floats_));
    if (own.empty()) return;
    auto& lane = lanes_[chunk % lanes_.size()];
    lane.missing = ranks() - 1;
    for (const auto other : others())
      receive(other, TagKind::scatter, chunk, view(lane.parts[other].first(own.size())), [=, this, &lane] {
        if (--lane.missing > 0) return;
        for (std::size_t r = 1; r < ranks(); ++r) kernels_.axpy(own, 1, lane.parts[r].first(own.size()));
        collect(chunk + lanes_.size());
      });
  }

  const std::size_t floats_;  // of a chunk
  std::vector<Lane> lanes_;
};

/// The members of `group` at `ranks`, ascending; the caller is one of them.
Group part_of(const Group& group, const std::vector<std::size_t>& ranks) {
  Group part;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == group.rank) part.rank = i;
    part.peers.push_back(group.peers[ranks[i]]);
  }
  return part;
}

class Hierarchical final : public Collective {
 public:
  Hierarchical(OperationQueue& operations, const core::Kernels& kernels, Group group, CollectiveTask task, Done done)
      : operations_(operations),
        kernels_(kernels),
        group_(std::move(group)),
        task_(std::move(task)),
        done_(std::move(done)) {
    std::vector<std::uint32_t> seen;
    for (std::size_t r = 0; r < group_.size(); ++r) {
      if (group_.hosts[r] == group_.hosts[group_.rank]) neighbours_.push_back(r);
      if (std::ranges::find(seen, group_.hosts[r]) != seen.end()) continue;
      seen.push_back(group_.hosts[r]);
      leaders_.push_back(r);
    }
  }

  void start() override { next(); }
  void cancel() override {
    if (now_) now_->cancel();
  }

 private:
  void next() {
    const bool leads = neighbours_.front() == group_.rank;
    auto task = task_;
    switch (phase_++) {
      case 0:
        return run(std::make_unique<SumAtFirst>(operations_, kernels_, part_of(group_, neighbours_), task, ended()));
      case 1:
        if (!leads) return next();
        task.algorithm = Algorithm::asa;
        return run(make_asa(operations_, kernels_, part_of(group_, leaders_), task, ended()));
      case 2:
        task.root = 0;
        return run(make_broadcast(operations_, kernels_, part_of(group_, neighbours_), task, ended()));
      default: return done_({});  // may destroy this object
    }
  }

  void run(std::unique_ptr<Collective> phase) {
    now_ = std::move(phase);
    now_->start();
  }

  Done ended() {
    return [this](core::Result<void> result) { result ? next() : done_(std::move(result)); };
  }

  OperationQueue& operations_;
  const core::Kernels& kernels_;
  const Group group_;
  const CollectiveTask task_;
  Done done_;
  std::vector<std::size_t> neighbours_;  // ranks on this host
  std::vector<std::size_t> leaders_;     // first rank of each host
  int phase_ = 0;
  std::unique_ptr<Collective> now_;
};

}  // namespace

std::unique_ptr<Collective> make_hierarchical(OperationQueue& operations, const core::Kernels& kernels, Group group,
                                              CollectiveTask task, Collective::Done done) {
  return std::make_unique<Hierarchical>(operations, kernels, std::move(group), std::move(task), std::move(done));
}

}  // namespace troupe::exchange
