/// The order in which an epoch visits its samples: a pure function of (seed, epoch, size), the same on every node.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace troupe::data {

enum class Order : std::uint8_t { shuffled, sequential };

/// The epoch's permutation of [0, size): Fisher-Yates over the stream (seed, shuffle, epoch). size < 2^32.
[[nodiscard]] std::vector<std::uint32_t> epoch_permutation(std::uint64_t seed, std::uint32_t epoch, std::int64_t size);

/// How files of consecutive samples are shuffled, so that reading stays nearly sequential.
struct ShardWindows {
  std::vector<std::int64_t>
      begins;               // ascending from 0: the first sample of each file; empty: one permutation of all samples
  std::int64_t window = 0;  // samples that are shuffled together; 0: all
};

/// The epoch's permutation in windows: the files in random order one behind the other, then each `window` consecutive samples shuffled.
/// All from the stream above; every sample once.
[[nodiscard]] std::vector<std::uint32_t> epoch_permutation(std::uint64_t seed, std::uint32_t epoch, std::int64_t size,
                                                           const ShardWindows& shards);

/// Returns permutations and keeps the latest, so that all loaders of a process share one (4 bytes per sample). Thread-safe. The
/// first caller for an epoch computes it (about 1 ms per 60,000 samples) while the others wait.
class Sampler {
 public:
  Sampler(std::uint64_t seed, std::int64_t size, Order order, ShardWindows shards = {});

  /// Stays valid while the caller holds it, for any epoch that others ask for.
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint32_t>> permutation(std::uint32_t epoch) const;
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }

 private:
  std::uint64_t seed_;
  std::int64_t size_;
  Order order_;
  ShardWindows shards_;
  mutable std::mutex mutex_;
  mutable std::uint32_t epoch_ = 0;                                   // guarded by mutex_
  mutable std::shared_ptr<const std::vector<std::uint32_t>> latest_;  // guarded by mutex_; of epoch_
};

}  // namespace troupe::data
