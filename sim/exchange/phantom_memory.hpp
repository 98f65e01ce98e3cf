/// The vectors of a simulated run that computes real gradients: every worker's, in the backend's own layout, the shards, and peer
/// messages in flight. The same kernels on the same slots as in real runs. One thread.
///
/// A request works on the sender's slices in place, also on another host: no other code may touch them until the answer has arrived. A
/// vector outlives its worker while a request uses it.
#pragma once

#include <map>
#include <memory>

#include "core/buffer.hpp"
#include "experiment/state/shard_memory.hpp"
#include "sim/exchange/collectives.hpp"

namespace troupe::sim {

class PhantomMemory {
 public:
  struct Options {
    std::size_t floats = 0;      ///< of an arena
    std::size_t statistics = 0;  ///< floats; 0: the model has none
    std::uint32_t workers = 0;
    std::vector<strategies::Slot> slots{};  ///< per worker, beside params, grads and statistics
    int buckets = 1;
    const core::Kernels* kernels = nullptr;
    core::Allocator* allocator = nullptr;  ///< outlives the memory
  };
  PhantomMemory(const Options& options, std::vector<experiment::ShardMemory> shards);

  /// New vectors, all zero. Errc::out_of_memory.
  [[nodiscard]] core::Result<void> begin(strategies::WorkerId worker);
  /// The worker is lost, and its unread peer messages with it. Its vectors stay until it begins again: a collective may use them.
  void end(strategies::WorkerId worker);
  /// Copies parameters, statistics and the optimizer's state of another worker.
  void copy(strategies::WorkerId to, strategies::WorkerId from);

  /// Empty for a slot that the worker does not have.
  [[nodiscard]] core::Span view(strategies::WorkerId worker, strategies::Slot slot);
  [[nodiscard]] core::Span view(strategies::WorkerId worker, strategies::Slot slot, strategies::Shards shards);
  void run(strategies::WorkerId worker, const strategies::KernelCall& call, strategies::Shards shards);

  /// Lends a worker's slot to a packet, until give_back().
  void lend(std::uint32_t packet, strategies::WorkerId worker, strategies::Slot slot);
  void give_back(std::uint32_t packet);
  /// The packet's vector at the shard.
  [[nodiscard]] core::Span payload(strategies::ShardId shard, std::uint32_t packet) const;
  void run_at_shard(strategies::ShardId shard, const strategies::KernelCall& call, const std::uint32_t* packet);
  [[nodiscard]] experiment::ShardMemory& shard(strategies::ShardId id) { return shards_.at(id); }
  [[nodiscard]] std::size_t shards() const noexcept { return shards_.size(); }

  void perform(const PendingCollective& collective);

  /// Copies a slot into a peer message. std::bad_alloc when memory runs out.
  [[nodiscard]] std::uint32_t write_peer_message(strategies::WorkerId worker, strategies::Slot slot);
  void mount(strategies::WorkerId worker, strategies::Slot slot, std::uint32_t peer_message);
  void dismount(strategies::WorkerId worker, strategies::Slot slot);  ///< calls throw_away
  void throw_away(std::uint32_t peer_message);

 private:
  struct Vectors {
    std::map<strategies::Slot, core::Buffer> own;
    std::map<strategies::Slot, std::uint32_t> peer_messages;
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
  std::vector<core::Buffer> peer_messages_;
  std::vector<std::uint32_t> free_peer_messages_;
};

}  // namespace troupe::sim
