#include "transport/exchange/collectives/parts.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "transport/exchange/collectives/task.hpp"

namespace troupe::exchange {
namespace {

using core::Slice;
using transport::TagKind;

void check_parts(const Group& group, const PartsTask& task, std::size_t summands) {
  if (group.rank >= group.size()) throw std::invalid_argument("a rank outside its group");
  if (task.parts.size() != group.size()) throw std::invalid_argument("a vector in parts needs one part for each rank");
  if (summands < 1 || summands > group.size()) throw std::invalid_argument("a sum needs 1 to all ranks");
}

CollectiveTask as_collective(const PartsTask& task) {
  return {.vector = task.vector, .scratch = task.scratch, .tag = task.tag};
}

class Allgather final : public Task {
 public:
  Allgather(OperationQueue& operations, Group group, const PartsTask& task, Done done)
      : Task(operations, core::host_kernels(), std::move(group), as_collective(task), std::move(done)),
        parts_(task.parts) {}

 private:
  void begin() override {
    for (const auto other : others())
      if (parts_[other].count > 0) receive(other, TagKind::gather, 0, transport::view_of(at(parts_[other])), [] {});
    if (parts_[rank()].count == 0) return;
    for (const auto other : others())
      send(other, TagKind::gather, 0, transport::view_of(core::ConstSpan(at(parts_[rank()]))), [] {});
  }

  const std::span<const Slice> parts_;
};

class ReduceScatter final : public Task {
 public:
  ReduceScatter(OperationQueue& operations, Group group, const PartsTask& task, Done done)
      : Task(operations, core::host_kernels(), std::move(group), as_collective(task), std::move(done)),
        parts_(task.parts),
        summands_(task.summands) {}

 private:
  void begin() override {
    if (parts_[rank()].count > 0) collect();
    if (rank() >= summands_) return;
    for (const auto other : others())
      if (parts_[other].count > 0)
        send(other, TagKind::scatter, 0, transport::view_of(core::ConstSpan(at(parts_[other]))), [] {});
  }

  void collect() {
    const core::Span own = at(parts_[rank()]);
    missing_ = summands_ - (rank() < summands_ ? 1 : 0);
    if (missing_ == 0) return;
    take_scratch(missing_ * Scratch::room<float>(own.size()));
    for (std::size_t r = 0; r < summands_; ++r) values_.push_back(r == rank() ? own : scratch_.cut<float>(own.size()));
    for (const auto other : others())
      if (other < summands_)
        receive(other, TagKind::scatter, 0, transport::view_of(values_[other]), [this] {
          if (--missing_ == 0) sum();
        });
  }

  void sum() {
    constexpr std::size_t kBlock = 1024;  // floats: the sum of a block stays in the first cache
    const core::Span own = at(parts_[rank()]);
    std::array<float, kBlock> total{};
    for (std::size_t first = 0; first < own.size(); first += kBlock) {
      const std::size_t count = std::min(kBlock, own.size() - first);
      std::copy_n(values_.front().data() + first, count, total.data());
      for (std::size_t r = 1; r < values_.size(); ++r) {
        const float* const value = values_[r].data() + first;
        for (std::size_t i = 0; i < count; ++i) total[i] += value[i];
      }
      std::copy_n(total.data(), count, own.data() + first);
    }
  }

  const std::span<const Slice> parts_;
  const std::size_t summands_;
  std::size_t missing_ = 0;
  std::vector<core::Span> values_;  // by rank: what is added up
};

}  // namespace

std::unique_ptr<Collective> make_allgather(OperationQueue& operations, Group group, const PartsTask& task,
                                           Collective::Done done) {
  check_parts(group, task, 1);
  return std::make_unique<Allgather>(operations, std::move(group), task, std::move(done));
}

std::unique_ptr<Collective> make_reduce_scatter(OperationQueue& operations, Group group, const PartsTask& task,
                                                Collective::Done done) {
  check_parts(group, task, task.summands);
  return std::make_unique<ReduceScatter>(operations, std::move(group), task, std::move(done));
}

}  // namespace troupe::exchange
