/// Keeps the blocks of samples that were used last, for files in which a sample cannot be read without its neighbours. Thread-safe: threads
/// that find their block do not wait for one that loads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace troupe::data {

class BlockCache {
 public:
  using Bytes = std::vector<std::uint8_t>;
  using Block = std::shared_ptr<const Bytes>;
  using Key = std::pair<std::size_t, std::int64_t>;  // file, block in it

  /// Keeps at most so many bytes, but at least one block. Blocks that are in use count only while they are kept.
  explicit BlockCache(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  /// The block of `key`, loaded by `load` where it is not kept: by one thread at a time. Errors are those of `load`, and are not kept.
  [[nodiscard]] core::Result<Block> get(const Key& key, const std::function<core::Result<Bytes>()>& load);

 private:
  [[nodiscard]] Block find(const Key& key);
  void keep(const Key& key, Block block);

  std::size_t most_bytes_;
  std::mutex loading_;
  std::mutex mutex_;
  std::vector<std::pair<Key, Block>> kept_;  // guarded by mutex_; the one used last at the end
};

}  // namespace troupe::data
