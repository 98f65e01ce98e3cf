#include "sim/exchange/phantom_memory.hpp"

#include <new>
#include <utility>

#include "core/buffer.hpp"

namespace troupe::sim {

using strategies::Slot;
using strategies::SlotKind;
using strategies::WorkerId;

PhantomMemory::PhantomMemory(const Options& options, std::vector<experiment::ShardMemory> shards)
    : options_(options), shards_(std::move(shards)), workers_(options.workers) {}

core::Result<void> PhantomMemory::begin(WorkerId worker) {
  auto vectors = std::make_shared<Vectors>();
  const auto add = [&](Slot slot, std::size_t floats) -> core::Result<void> {
    if (floats == 0) return {};
    auto buffer = core::Buffer::allocate(*options_.allocator, floats);
    if (!buffer) return tl::unexpected(std::move(buffer.error()));
    vectors->own.emplace(slot, std::move(*buffer));
    return {};
  };
  auto slots = options_.slots;
  slots.insert(slots.end(), {strategies::kParams, strategies::kGrads});
  for (const auto slot : slots)
    if (auto added = add(slot, options_.floats); !added) return added;
  if (auto added = add(strategies::kStatistics, options_.statistics); !added) return added;
  workers_.at(worker) = std::move(vectors);
  return {};
}

void PhantomMemory::end(WorkerId worker) {
  auto& peer_messages = workers_.at(worker)->peer_messages;
  for (const auto& [slot, peer_message] : peer_messages) throw_away(peer_message);
  peer_messages.clear();
}

void PhantomMemory::copy(WorkerId to, WorkerId from) {
  for (auto& [slot, buffer] : workers_.at(to)->own) {
    const bool state =
        slot == strategies::kParams || slot == strategies::kStatistics || slot.kind == SlotKind::velocity;
    if (state) options_.kernels->copy(buffer.view(), workers_.at(from)->own.at(slot).view());
  }
}

core::Span PhantomMemory::view(WorkerId worker, Slot slot) {
  auto& vectors = *workers_.at(worker);
  if (const auto found = vectors.own.find(slot); found != vectors.own.end()) return found->second.view();
  if (const auto found = vectors.peer_messages.find(slot); found != vectors.peer_messages.end())
    return peer_messages_[found->second].view();
  return {};
}

core::Span PhantomMemory::view(WorkerId worker, Slot slot, strategies::Shards shards) {
  const auto whole = view(worker, slot);
  if (shards.all() || whole.empty()) return whole;
  const auto first = core::slice_of(whole.size(), shards.first, shards_.size());
  const auto last = core::slice_of(whole.size(), shards.first + shards.count - 1, shards_.size());
  return whole.subspan(first.offset, last.offset + last.count - first.offset);
}

void PhantomMemory::run(WorkerId worker, const strategies::KernelCall& call, strategies::Shards shards) {
  strategies::run(*options_.kernels, call, [&](Slot slot) { return view(worker, slot, shards); });
}

void PhantomMemory::lend(std::uint32_t packet, WorkerId worker, Slot slot) {
  loans_.insert_or_assign(packet, Loan{workers_.at(worker), slot});
}

void PhantomMemory::give_back(std::uint32_t packet) { loans_.erase(packet); }

core::Span PhantomMemory::payload(strategies::ShardId shard, std::uint32_t packet) const {
  const auto& [vectors, slot] = loans_.at(packet);
  const auto whole = vectors->own.at(slot).view();
  const auto slice = core::slice_of(whole.size(), shard, shards_.size());
  return whole.subspan(slice.offset, slice.count);
}

void PhantomMemory::run_at_shard(strategies::ShardId shard, const strategies::KernelCall& call,
                                 const std::uint32_t* packet) {
  shards_.at(shard).run(call, packet ? payload(shard, *packet) : core::Span{});
}

/// Backward order: bucket 0 is the end of the arena.
core::Span PhantomMemory::bucket(core::Span whole, int bucket) const {
  if (bucket < 0) return whole;
  const auto buckets = static_cast<std::size_t>(options_.buckets);
  const auto slice = core::slice_of(whole.size(), buckets - 1 - static_cast<std::size_t>(bucket), buckets);
  return whole.subspan(slice.offset, slice.count);
}

void PhantomMemory::perform(const PendingCollective& collective) {
  std::vector<core::Span> all;
  std::size_t root = 0;
  for (const auto& part : collective.parts) {
    if (part.worker == collective.task.root) root = all.size();
    all.push_back(bucket(view(part.worker, collective.task.slot), collective.task.bucket));
  }
  if (collective.task.broadcast) return options_.kernels->broadcast_all(all, root);
  const bool mean = collective.task.op == strategies::ReduceOp::mean;
  options_.kernels->reduce_all(all, mean ? 1 / static_cast<float>(all.size()) : 1);
}

// ---- peer messages

std::uint32_t PhantomMemory::write_peer_message(WorkerId worker, Slot slot) {
  if (free_peer_messages_.empty()) {
    auto buffer = core::Buffer::allocate(*options_.allocator, options_.floats);
    if (!buffer) throw std::bad_alloc();
    free_peer_messages_.push_back(static_cast<std::uint32_t>(peer_messages_.size()));
    peer_messages_.push_back(std::move(*buffer));
  }
  const auto peer_message = free_peer_messages_.back();
  free_peer_messages_.pop_back();
  options_.kernels->copy(peer_messages_[peer_message].view(), view(worker, slot));
  return peer_message;
}

void PhantomMemory::mount(WorkerId worker, Slot slot, std::uint32_t peer_message) {
  workers_.at(worker)->peer_messages.emplace(slot, peer_message);
}

void PhantomMemory::dismount(WorkerId worker, Slot slot) {
  throw_away(workers_.at(worker)->peer_messages.extract(slot).mapped());
}

void PhantomMemory::throw_away(std::uint32_t peer_message) { free_peer_messages_.push_back(peer_message); }

}  // namespace troupe::sim
