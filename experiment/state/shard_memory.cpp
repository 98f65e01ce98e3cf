#include "experiment/state/shard_memory.hpp"

#include <fmt/format.h>

#include "core/buffer.hpp"

namespace troupe::experiment {

core::Span ShardMemory::view(strategies::Slot slot) {
  if (slot == strategies::kCenter) return center_.view();
  const bool state = slot.kind == strategies::SlotKind::state && slot.index < states_.size();
  return state ? states_[slot.index].view() : core::Span{};
}

void ShardMemory::run(const strategies::KernelCall& call, core::Span payload) {
  strategies::run(*kernels_, call, [&](strategies::Slot slot) {
    return slot.kind == strategies::SlotKind::payload ? payload : view(slot);
  });
}

namespace {

/// A canonical vector in the layout of the arenas, cut into shards; null: zeros.
core::Result<std::vector<core::Buffer>> cut(const std::vector<float>* canonical, const nn::Layout& layout,
                                            strategies::ShardId count, const core::Kernels& kernels,
                                            core::Allocator& memory) {
  core::HostAllocator host;
  auto arena = core::Buffer::allocate(host, layout.arena_floats(), "the centre, to be cut into shards");
  if (!arena) return tl::unexpected(arena.error());
  if (canonical) layout.from_canonical(*canonical, arena->view());
  std::vector<core::Buffer> shards;
  for (strategies::ShardId s = 0; s < count; ++s) {
    const auto slice = core::slice_of(arena->size(), s, count);
    if (slice.count == 0) {
      return core::fail(core::Errc::config,
                        fmt::format("cluster.servers = {}: the model's {} parameters are too few for so many shards",
                                    count, layout.canonical_floats()));
    }
    auto shard = core::Buffer::allocate(memory, slice.count, "a server's shard");
    if (!shard) return tl::unexpected(shard.error());
    try {
      kernels.upload(shard->view(), arena->view().subspan(slice.offset, slice.count));
    } catch (const core::KernelsFailed& failed) {
      return tl::unexpected(failed.error());
    }
    shards.push_back(std::move(*shard));
  }
  return shards;
}

}  // namespace

core::Result<std::vector<ShardMemory>> cut_shards(const StartState& start, const nn::Layout& layout,
                                                  strategies::ShardId count, std::uint8_t states,
                                                  const core::Kernels& kernels, core::Allocator& memory) {
  auto centers = cut(start.parameters.get(), layout, count, kernels, memory);
  if (!centers) return tl::unexpected(centers.error());
  std::vector<std::vector<core::Buffer>> by_shard(count);
  for (std::uint8_t k = 0; k < states; ++k) {
    const auto* saved = k < start.server_states.size() ? start.server_states[k].get() : nullptr;
    auto cuts = cut(saved, layout, count, kernels, memory);
    if (!cuts) return tl::unexpected(cuts.error());
    for (strategies::ShardId s = 0; s < count; ++s) by_shard[s].push_back(std::move((*cuts)[s]));
  }
  std::vector<ShardMemory> shards;
  for (strategies::ShardId s = 0; s < count; ++s)
    shards.emplace_back(kernels, std::move((*centers)[s]), std::move(by_shard[s]));
  return shards;
}

}  // namespace troupe::experiment
