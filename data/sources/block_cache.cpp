#include "data/sources/block_cache.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::data {

BlockCache::Block BlockCache::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(kept_, key, &std::pair<Key, Block>::first);
  if (found == kept_.end()) return nullptr;
  std::rotate(found, found + 1, kept_.end());
  return kept_.back().second;
}

void BlockCache::keep(const Key& key, Block block) {
  const std::lock_guard lock(mutex_);
  kept_.emplace_back(key, std::move(block));
  auto bytes = std::accumulate(kept_.begin(), kept_.end(), std::size_t{0},
                               [](std::size_t sum, const auto& entry) { return sum + entry.second->size(); });
  while (bytes > most_bytes_ && kept_.size() > 1) {
    bytes -= kept_.front().second->size();
    kept_.erase(kept_.begin());
  }
}

core::Result<BlockCache::Block> BlockCache::get(const Key& key, const std::function<core::Result<Bytes>()>& load) {
  if (auto block = find(key)) return block;
  const std::lock_guard lock(loading_);
  if (auto block = find(key)) return block;  // another thread has loaded it meanwhile
  auto bytes = load();
  if (!bytes) return tl::unexpected(std::move(bytes.error()));
  auto block = std::make_shared<const Bytes>(*std::move(bytes));
  keep(key, block);
  return block;
}

}  // namespace troupe::data
