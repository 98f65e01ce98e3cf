/// A worker's vectors, independent of its host: the compiled replica, its arenas, and the further vectors of optimizer and strategy,
/// allocated once with the arena's length, under the names that strategies use. Every vector can be lent: loans keep the memory alive. One
/// thread, the creator.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/buffer.hpp"
#include "experiment/accounts/distance.hpp"
#include "experiment/state/start_state.hpp"
#include "nn/backend.hpp"
#include "strategies/host/actions.hpp"
#include "strategies/strategy.hpp"

namespace troupe::experiment {

/// A slice of an arena. `owner` keeps the memory alive for the duration of the loan, even after the arena's owner ended.
struct BorrowedView {
  core::Span data;
  std::shared_ptr<const void> owner;
};

/// The vectors are in the memory of CompileOptions::arenas, a device's or the host's, and so are loans, where Options::loans does not name
/// other memory: then a loan is a copy, and take_back() copies what came back. A device that fails throws core::KernelsFailed from every
/// call that reads or writes vectors.
class WorkerMemory {
 public:
  struct Options {
    nn::Backend* backend = nullptr;  // outlives the memory
    const nn::Graph* graph = nullptr;
    nn::CompileOptions compile{};      // compile.arenas outlives the memory and its loans
    core::Allocator* loans = nullptr;  // host memory that borrowers need, outlives the loans; null: they use the arenas
    std::int64_t micro_batches = 1;    // train.accumulate
    std::vector<strategies::Slot> extra{};  // the strategy's, Needs::worker_slots
    core::OptimizerKind optimizer = core::OptimizerKind::sgd;
    strategies::ShardId shards = 0;  // of the centre; 0: no centre
  };
  /// Errors: those of Backend::compile; out_of_memory.
  [[nodiscard]] static core::Result<WorkerMemory> create(const Options& options);

  /// Loads the initial state of worker `worker`. Errors: those of nn::OwnOptimizer::set_own_state.
  [[nodiscard]] core::Result<void> load(const StartState& start, strategies::WorkerId worker);

  /// For vectors of this memory; also as long as a loan lives.
  [[nodiscard]] const core::Kernels& kernels() const noexcept { return *kernels_; }
  [[nodiscard]] nn::Replica& replica() noexcept { return *replica_; }
  [[nodiscard]] const nn::Replica& replica() const noexcept { return *replica_; }

  /// Empty for a slot that does not exist (an optimizer without velocity).
  [[nodiscard]] core::Span view(strategies::Slot slot);
  /// The part of the vector that `shards` cover; all of it by default.
  [[nodiscard]] core::Span view(strategies::Slot slot, strategies::Shards shards);
  /// [offset, offset + count) of `slot`, on loan: a device's work on it so far is done. `filled` = false: the borrower overwrites all of it.
  [[nodiscard]] BorrowedView lend(strategies::Slot slot, std::size_t offset, std::size_t count, bool filled = true);
  [[nodiscard]] BorrowedView lend(strategies::Slot slot, strategies::ShardId shard);
  /// A loan is the vector itself, not a copy.
  [[nodiscard]] bool lends_in_place() const noexcept { return !copies_loans(); }
  /// The end of a loan that the borrower may have written to.
  void take_back(strategies::Slot slot, std::size_t offset, std::size_t count);
  /// Before lend() of parameters that a pull overwrites: take_back_measured() will know what they were. Where a loan is the vector itself, this
  /// copies the part to host memory, as long as the vector, that is kept for the next time. False: there is no memory for it.
  [[nodiscard]] bool remember(strategies::Slot slot, std::size_t offset, std::size_t count);
  /// take_back() of a part of the slot that was remembered last: Σ (after − before)². None: a device has no memory to measure with.
  [[nodiscard]] std::optional<double> take_back_measured(strategies::Slot slot, std::size_t offset, std::size_t count);
  /// Σ (a − b)² over the part that `shards` cover. None: a device has no memory to measure with.
  [[nodiscard]] std::optional<double> squared_distance(strategies::Slot a, strategies::Slot b,
                                                       strategies::Shards shards);
  /// The memory of loans, and of vectors for mount().
  [[nodiscard]] core::Allocator& loans() const noexcept { return *loans_; }
  [[nodiscard]] const core::Kernels& loan_kernels() const noexcept { return *loan_kernels_; }

  /// Runs `call` on these slots, or on the parts that `shards` cover; notifies the replica of changed parameters.
  void run(const strategies::KernelCall& call, strategies::Shards shards = {});

  /// Makes a peer's vector, in the memory of loans, readable as `slot` until dismount(): no other vector has this slot.
  void mount(strategies::Slot slot, BorrowedView vector);
  void dismount(strategies::Slot slot);

 private:
  WorkerMemory() = default;
  /// Waits for the device before vectors are freed that it may still use. An error has been reported before.
  struct Finish {
    void operator()(const core::Kernels* kernels) const noexcept;
  };

  /// optimize_delta with the replica's own optimizer.
  void step_apart(const strategies::KernelCall& call);
  [[nodiscard]] bool copies_loans() const noexcept { return loans_ != arenas_; }
  /// A vector of `memory`. Out of memory: std::bad_alloc.
  [[nodiscard]] static std::shared_ptr<core::Buffer> vector_in(core::Allocator& memory, std::size_t floats);

  core::Allocator* arenas_ = nullptr;
  core::Allocator* loans_ = nullptr;
  const core::Kernels* loan_kernels_ = nullptr;
  using Vector = std::shared_ptr<core::Buffer>;
  std::map<strategies::Slot, Vector> lent_;            // copies of slots on loan, kept for the next one
  std::map<strategies::Slot, Vector> mounted_copies_;  // of peers' vectors, where loans are copies
  std::vector<Vector> spare_;                          // their memory, for the next ones
  Vector before_;                                      // parameters before a step of the replica's own optimizer
  core::Buffer remembered_;                            // host memory, from the first remember() that copies
  std::optional<DistanceMeter> meter_;
  std::map<strategies::Slot, Vector> extra_;
  std::shared_ptr<nn::Replica>
      replica_;  // shared: loans of its arenas may outlive the worker. Ends before the vectors that its steps use
  std::map<strategies::Slot, BorrowedView> mounted_;
  std::unique_ptr<const core::Kernels, Finish> kernels_;  // the backend's; the first member that ends
  strategies::ShardId shards_ = 0;
};

}  // namespace troupe::experiment
