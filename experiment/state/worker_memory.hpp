/// A worker's numbers, whoever executes the worker: the compiled replica, its arenas and the further vectors that optimizer and
/// strategy need, allocated once with the arena's length, by the names that strategies use. Every vector can be lent: loans keep
/// the memory alive. One thread, the one that created it.
#pragma once

#include <map>
#include <memory>

#include "core/buffer.hpp"
#include "experiment/state/start_state.hpp"
#include "nn/backend.hpp"
#include "strategies/host/actions.hpp"
#include "strategies/strategy.hpp"

namespace troupe::experiment {

/// A slice of somebody's arena. `owner` keeps the memory alive for as long as the loan lasts, whatever ends meanwhile.
struct Lent {
  core::Span data;
  std::shared_ptr<const void> owner;
};

class WorkerMemory {
 public:
  struct Options {
    nn::Backend* backend = nullptr;  // outlives the memory
    const nn::Graph* graph = nullptr;
    nn::CompileOptions compile{};           // compile.arenas outlives the memory and its loans
    std::vector<strategies::Slot> extra{};  // the strategy's, Needs::worker_slots
    core::OptimizerKind optimizer = core::OptimizerKind::sgd;
    strategies::ShardId shards = 0;  // of the centre; 0: there is none
  };
  /// Errors: those of Backend::compile; out_of_memory.
  [[nodiscard]] static core::Result<WorkerMemory> create(const Options& options);

  /// Takes over what worker `worker` begins with.
  void load(const StartState& start, strategies::WorkerId worker);

  [[nodiscard]] nn::Replica& replica() noexcept { return *replica_; }
  [[nodiscard]] const nn::Replica& replica() const noexcept { return *replica_; }

  /// Empty for a slot that was not asked for (an optimizer without velocity).
  [[nodiscard]] core::Span view(strategies::Slot slot);
  /// What `shards` cover of it; all of it by default.
  [[nodiscard]] core::Span view(strategies::Slot slot, strategies::Shards shards);
  /// [offset, offset + count) of `slot`, on loan.
  [[nodiscard]] Lent lend(strategies::Slot slot, std::size_t offset, std::size_t count);
  [[nodiscard]] Lent lend(strategies::Slot slot, strategies::ShardId shard);

  /// Runs `call` on these slots, or on what `shards` cover of them; the replica knows then that its parameters changed.
  void run(const strategies::KernelCall& call, strategies::Shards shards = {});

  /// A peer's vector becomes readable as `slot` until dismount(): a slot that nobody else has.
  void mount(strategies::Slot slot, Lent vector);
  void dismount(strategies::Slot slot);
  [[nodiscard]] const Lent& mounted(strategies::Slot slot) const { return mounted_.at(slot); }

 private:
  WorkerMemory() = default;

  std::shared_ptr<nn::Replica> replica_;  // shared: loans of its arenas may outlive the worker
  std::map<strategies::Slot, std::shared_ptr<core::Buffer>> extra_;
  std::map<strategies::Slot, Lent> mounted_;
  const core::Kernels* kernels_ = nullptr;
  strategies::ShardId shards_ = 0;
};

}  // namespace troupe::experiment
