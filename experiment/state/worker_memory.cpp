#include "experiment/state/worker_memory.hpp"

#include <new>
#include <stdexcept>

#include "core/buffer.hpp"
#include "experiment/state/accumulation.hpp"
#include "nn/arenas/host_view.hpp"
#include "nn/checkpoint/own_state.hpp"

namespace troupe::experiment {

using strategies::Slot;
using strategies::SlotKind;

core::Result<WorkerMemory> WorkerMemory::create(const Options& options) {
  auto compiled = compile_worker(*options.backend, *options.graph, options.compile, options.micro_batches);
  if (!compiled) return tl::unexpected(compiled.error());
  WorkerMemory memory;
  memory.replica_ = std::move(*compiled);
  memory.kernels_.reset(&memory.replica_->kernels());
  memory.arenas_ = options.compile.arenas;
  const bool copies = options.loans != nullptr && options.loans != options.compile.arenas &&
                      (options.compile.arenas->space() == core::MemorySpace::device
                           ? options.loans->space() != core::MemorySpace::device
                           : options.loans->space() == core::MemorySpace::host_shared);
  memory.loans_ = copies ? options.loans : memory.arenas_;
  memory.loan_kernels_ = copies ? &core::host_kernels() : memory.kernels_.get();
  memory.meter_.emplace(*memory.kernels_, memory.arenas_);
  memory.shards_ = options.shards;
  auto extra = options.extra;
  for (int k = 0; k < core::state_slots(options.optimizer); ++k) extra.push_back(optimizer_state(k));
  const auto floats = memory.replica_->parameters().size();
  for (const Slot slot : extra) {
    auto buffer = core::Buffer::allocate(*options.compile.arenas, floats, "a vector of a worker's state");
    if (!buffer) return tl::unexpected(buffer.error());
    memory.extra_.emplace(slot, std::make_shared<core::Buffer>(std::move(*buffer)));
  }
  return memory;
}

void WorkerMemory::Finish::operator()(const core::Kernels* kernels) const noexcept {
  try {
    kernels->finish();
  } catch (const core::KernelsFailed&) {  // nothing is left to wait for
  }
}

core::Result<void> WorkerMemory::load(const StartState& start, strategies::WorkerId worker) {
  const auto write = [&](Slot slot, const std::vector<float>& canonical) {
    nn::write_canonical(*kernels_, *replica_->layout(), canonical, view(slot));
  };
  const auto write_statistics = [&](const std::vector<float>& canonical) {
    nn::write_canonical(*kernels_, nn::statistics_layout(replica_->graph()), canonical, replica_->statistics());
  };
  const auto set_own = [&](const OwnState& state) {
    auto* const optimizer = nn::own_optimizer_of(*replica_);
    return state && optimizer != nullptr ? optimizer->set_own_state(*state) : core::Result<void>();
  };
  if (!start.workers.empty()) {
    const auto& own = start.workers.at(worker);
    for (const auto& [slot, vector] : own.slots) write(slot, *vector);
    write_statistics(own.statistics);
    replica_->set_state_of_steps(own.steps);
    replica_->parameters_written();
    return set_own(own.own_state);
  }
  replica_->import_canonical(*start.parameters);
  if (start.average) write(start.average_slot, *start.average);
  if (start.statistics) write_statistics(*start.statistics);
  const auto& states = start.optimizer_states.at(worker);
  for (int k = 0; k < static_cast<int>(states.size()); ++k)
    write(optimizer_state(k), *states[static_cast<std::size_t>(k)]);
  return start.own_states.empty() ? core::Result<void>() : set_own(start.own_states.at(worker));
}

core::Span WorkerMemory::view(Slot slot) {
  const auto newest = [this](core::Span vector) {
    if (const auto* failure = replica_->failure()) throw core::KernelsFailed(*failure);
    return vector;
  };
  if (slot.kind == SlotKind::params) return newest(replica_->parameters());
  if (slot.kind == SlotKind::grads) return replica_->gradients();
  if (slot.kind == SlotKind::statistics) return newest(replica_->statistics());
  if (const auto found = extra_.find(slot); found != extra_.end()) return found->second->view();
  if (const auto found = mounted_.find(slot); found != mounted_.end()) return found->second.data;
  return {};
}

core::Span WorkerMemory::view(Slot slot, strategies::Shards shards) {
  const auto whole = view(slot);
  if (shards.all() || whole.empty()) return whole;
  const auto first = core::slice_of(whole.size(), shards.first, shards_);
  const auto last = core::slice_of(whole.size(), shards.first + shards.count - 1, shards_);
  return whole.subspan(first.offset, last.offset + last.count - first.offset);
}

std::shared_ptr<core::Buffer> WorkerMemory::vector_in(core::Allocator& memory, std::size_t floats) {
  auto buffer = core::Buffer::allocate(memory, floats);
  if (!buffer) throw std::bad_alloc();
  return std::make_shared<core::Buffer>(std::move(*buffer));
}

BorrowedView WorkerMemory::lend(Slot slot, std::size_t offset, std::size_t count, bool filled) {
  const auto whole = view(slot);
  if (offset + count > whole.size()) throw std::logic_error("a slot is to be lent that this worker does not have");
  const auto part = whole.subspan(offset, count);
  if (copies_loans()) {
    auto& copy = lent_[slot];
    if (!copy) copy = vector_in(*loans_, whole.size());
    const auto lent = copy->view().subspan(offset, count);
    if (filled) kernels_->download(lent, part);
    return {lent, copy};
  }
  kernels_->finish();
  if (const auto found = extra_.find(slot); found != extra_.end()) return {part, found->second};
  return {part, replica_};
}

BorrowedView WorkerMemory::lend(Slot slot, strategies::ShardId shard) {
  const auto slice = core::slice_of(view(slot).size(), shard, shards_);
  return lend(slot, slice.offset, slice.count);
}

void WorkerMemory::take_back(Slot slot, std::size_t offset, std::size_t count) {
  if (copies_loans())
    kernels_->upload(view(slot).subspan(offset, count), lent_.at(slot)->view().subspan(offset, count));
}

bool WorkerMemory::remember(Slot slot, std::size_t offset, std::size_t count) {
  if (copies_loans()) return true;  // the loan is the copy, and the vector stays as it is
  const auto whole = view(slot);
  if (remembered_.size() != whole.size()) {
    static core::HostAllocator host;
    auto buffer = core::Buffer::allocate(host, whole.size());
    if (!buffer) return false;
    remembered_ = std::move(*buffer);
  }
  kernels_->download(remembered_.view().subspan(offset, count), whole.subspan(offset, count));
  return true;
}

std::optional<double> WorkerMemory::take_back_measured(Slot slot, std::size_t offset, std::size_t count) {
  const auto other = copies_loans() ? lent_.at(slot)->view() : remembered_.view();
  const auto squared = meter_->squared_from_host(view(slot).subspan(offset, count), other.subspan(offset, count));
  take_back(slot, offset, count);
  return squared;
}

std::optional<double> WorkerMemory::squared_distance(Slot a, Slot b, strategies::Shards shards) {
  return meter_->squared(view(a, shards), view(b, shards));
}

void WorkerMemory::run(const strategies::KernelCall& call, strategies::Shards shards) {
  using strategies::kGrads, strategies::kParams, strategies::kVelocity;
  if (call.kernel == strategies::KernelName::optimize && call.y == kParams && call.x == kGrads && call.z == kVelocity &&
      shards.all()) {
    // The backend's own optimizer, fused with its other work on parameters.
    return replica_->apply(call.optimizer, {view(kVelocity), view(optimizer_state(1))});
  }
  if (call.kernel == strategies::KernelName::optimize_delta && replica_->owns_optimizer()) return step_apart(call);
  strategies::run(*kernels_, call, [&](Slot slot) { return view(slot, shards); });
  if (writes(call, kParams)) replica_->parameters_written();
}

/// The replica's optimizer moves the parameters: the step is the difference, and the parameters come back.
void WorkerMemory::step_apart(const strategies::KernelCall& call) {
  if (before_ == nullptr) before_ = vector_in(*arenas_, replica_->parameters().size());
  kernels_->copy(before_->view(), replica_->parameters());
  replica_->apply(call.optimizer, {});
  const auto parameters = replica_->parameters();  // asked anew: they may be fetched from where they have moved
  const auto delta = view(call.y);
  kernels_->copy(delta, parameters);
  kernels_->axpy(delta, -1, before_->view());
  kernels_->copy(parameters, before_->view());
  replica_->parameters_written();
}

void WorkerMemory::mount(Slot slot, BorrowedView vector) {
  if (copies_loans()) {
    if (spare_.empty() || spare_.back()->size() != vector.data.size())
      spare_.push_back(vector_in(*arenas_, vector.data.size()));
    const auto here = std::move(spare_.back());
    spare_.pop_back();
    kernels_->upload(here->view(), vector.data);
    vector = {here->view(), here};
    mounted_copies_.insert_or_assign(slot, here);
  }
  mounted_.insert_or_assign(slot, std::move(vector));
}
void WorkerMemory::dismount(Slot slot) {
  mounted_.erase(slot);
  if (auto copy = mounted_copies_.extract(slot); !copy.empty()) spare_.push_back(std::move(copy.mapped()));
}

}  // namespace troupe::experiment
