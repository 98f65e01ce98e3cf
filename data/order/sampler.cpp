#include "data/order/sampler.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>

#include "core/random.hpp"

namespace troupe::data {
namespace {

std::vector<std::uint32_t> identity(std::int64_t size) {
  if (size < 0 || size > std::numeric_limits<std::uint32_t>::max())
    throw std::length_error("a permutation has at most 2^32 - 1 samples");
  std::vector<std::uint32_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

/// Fisher-Yates.
void shuffle(std::span<std::uint32_t> order, core::Random& random) {
  for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
}

}  // namespace

std::vector<std::uint32_t> epoch_permutation(std::uint64_t seed, std::uint32_t epoch, std::int64_t size) {
  auto order = identity(size);
  core::Random random(seed, core::Purpose::shuffle, epoch);
  shuffle(order, random);
  return order;
}

std::vector<std::uint32_t> epoch_permutation(std::uint64_t seed, std::uint32_t epoch, std::int64_t size,
                                             const ShardWindows& shards) {
  if (shards.begins.empty() || shards.window < 1 || shards.window >= size) return epoch_permutation(seed, epoch, size);
  auto files = identity(static_cast<std::int64_t>(shards.begins.size()));
  core::Random random(seed, core::Purpose::shuffle, epoch);
  shuffle(files, random);
  auto order = identity(size);
  auto next = order.begin();
  for (const std::size_t file : files) {
    const std::int64_t past = file + 1 < shards.begins.size() ? shards.begins[file + 1] : size;
    const auto end = next + (past - shards.begins[file]);
    std::iota(next, end, static_cast<std::uint32_t>(shards.begins[file]));
    next = end;
  }
  const std::span all(order);
  const auto window = static_cast<std::size_t>(shards.window);
  for (std::size_t at = 0; at < all.size(); at += window)
    shuffle(all.subspan(at, std::min(window, all.size() - at)), random);
  return order;
}

Sampler::Sampler(std::uint64_t seed, std::int64_t size, Order order, ShardWindows shards)
    : seed_(seed), size_(size), order_(order), shards_(std::move(shards)) {}

std::shared_ptr<const std::vector<std::uint32_t>> Sampler::permutation(std::uint32_t epoch) const {
  const std::lock_guard lock(mutex_);
  if (!latest_ || (epoch_ != epoch && order_ == Order::shuffled)) {
    latest_ = std::make_shared<const std::vector<std::uint32_t>>(
        order_ == Order::shuffled ? epoch_permutation(seed_, epoch, size_, shards_) : identity(size_));
    epoch_ = epoch;
  }
  return latest_;
}

}  // namespace troupe::data
