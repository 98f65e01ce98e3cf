/// The numbers of a simulated company that computes real gradients: every worker's vectors in the backend's own layout, the shards,
/// and letters on their way. The same kernels on the same slots as real runs. One thread.
///
/// Requests work on the sender's slices in place, on whichever host it is: nobody else may touch them until the answer is there. A
/// vector outlives its worker for as long as a request has it.
#pragma once

#include <map>
#include <memory>

#include "core/buffer.hpp"
#include "experiment/state/shard_memory.hpp"
#include "sim/collectives.hpp"

namespace troupe::sim {

class PhantomMemory {
 public:
  struct Options {
    std::size_t floats = 0;      ///< of an arena
    std::size_t statistics = 0;  ///< floats; 0: the model has none
    std::uint32_t workers = 0;
    std::vector<strategies::Slot> slots{};  ///< of every worker, beside params, grads and statistics
    int buckets = 1;
    const core::Kernels* kernels = nullptr;
    core::Allocator* allocator = nullptr;  ///< outlives the memory
  };
  PhantomMemory(const Options& options, std::vector<experiment::ShardMemory> shards);

  /// Fresh vectors, all zero. Errc::out_of_memory.
  [[nodiscard]] core::Result<void> begin(strategies::WorkerId worker);
  /// The worker is gone, and its letters with it. Its vectors stay until it begins anew: a collective may have them.
  void end(strategies::WorkerId worker);
  /// Parameters, statistics and the optimizer's state of another worker.
  void copy(strategies::WorkerId to, strategies::WorkerId from);

  /// Empty for a slot that the worker does not have.
  [[nodiscard]] core::Span view(strategies::WorkerId worker, strategies::Slot slot);
  [[nodiscard]] core::Span view(strategies::WorkerId worker, strategies::Slot slot, strategies::Shards shards);
  void run(strategies::WorkerId worker, const strategies::KernelCall& call, strategies::Shards shards);

  /// A worker's slot goes with a packet to a shard, until give_back().
  void lend(std::uint32_t packet, strategies::WorkerId worker, strategies::Slot slot);
  void give_back(std::uint32_t packet);
  /// What the packet has brought to the shard.
  [[nodiscard]] core::Span payload(strategies::ShardId shard, std::uint32_t packet) const;
  void run_at_shard(strategies::ShardId shard, const strategies::KernelCall& call, const std::uint32_t* packet);
  [[nodiscard]] experiment::ShardMemory& shard(strategies::ShardId id) { return shards_.at(id); }
  [[nodiscard]] std::size_t shards() const noexcept { return shards_.size(); }

  void perform(const Meeting& meeting);

  /// A copy of a slot as a letter. std::bad_alloc when memory runs out.
  [[nodiscard]] std::uint32_t write_letter(strategies::WorkerId worker, strategies::Slot slot);
  void mount(strategies::WorkerId worker, strategies::Slot slot, std::uint32_t letter);
  void dismount(strategies::WorkerId worker, strategies::Slot slot);  ///< and throw_away
  void throw_away(std::uint32_t letter);

 private:
  struct Vectors {
    std::map<strategies::Slot, core::Buffer> own;
    std::map<strategies::Slot, std::uint32_t> letters;
  };
  struct Loan {
    std::shared_ptr<Vectors> vectors;
    strategies::Slot slot;
  };
  [[nodiscard]] core::Span bucket(core::Span whole, int bucket) const;

  Options options_;
  std::vector<experiment::ShardMemory> shards_;
  std::vector<std::shared_ptr<Vectors>> workers_;
  std::map<std::uint32_t, Loan> loans_;  // by packet
  std::vector<core::Buffer> letters_;
  std::vector<std::uint32_t> free_letters_;
};

}  // namespace troupe::sim
