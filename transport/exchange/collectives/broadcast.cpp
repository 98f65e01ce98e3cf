// The root sends its vector's chunks to all other ranks in parallel.
#include <vector>

#include "transport/exchange/collectives/task.hpp"

namespace troupe::exchange {
namespace {

using core::Slice;
using transport::TagKind;

class Broadcast final : public Task {
 public:
  Broadcast(OperationQueue& operations, const core::Kernels& kernels, Group group, CollectiveTask task, Done done)
      : Task(operations, kernels, std::move(group), std::move(task), std::move(done)),
        floats_(chunk_floats(task_.chunks.floats, task_.vector.size(), ranks())) {}

 private:
  void begin() override {
    const auto lanes = std::min(task_.chunks.window, chunks_of(whole(), floats_));
    for (std::size_t chunk = 0; chunk < lanes; ++chunk) {
      if (rank() != *task_.root)
        take(chunk, lanes);
      else
        for (const auto other : others()) give(other, chunk, lanes);
    }
  }

  [[nodiscard]] Slice whole() const { return {0, task_.vector.size()}; }

  void give(std::size_t to, std::size_t chunk, std::size_t lanes) {
    const core::ConstSpan part = at(chunk_of(whole(), chunk, floats_));
    if (part.empty()) return;
    send(to, TagKind::broadcast, chunk, view(part), [=, this] { give(to, chunk + lanes, lanes); });
  }

  void take(std::size_t chunk, std::size_t lanes) {
    const core::Span part = at(chunk_of(whole(), chunk, floats_));
    if (part.empty()) return;
    receive(*task_.root, TagKind::broadcast, chunk, view(part), [=, this] { take(chunk + lanes, lanes); });
  }

  const std::size_t floats_;  // of a chunk
};

}  // namespace

std::unique_ptr<Collective> make_broadcast(OperationQueue& operations, const core::Kernels& kernels, Group group,
                                           CollectiveTask task, Collective::Done done) {
  return std::make_unique<Broadcast>(operations, kernels, std::move(group), std::move(task), std::move(done));
}

}  // namespace troupe::exchange
