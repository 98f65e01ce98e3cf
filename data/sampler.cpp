#include "data/sampler.hpp"

#include <limits>
#include <numeric>
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

}  // namespace

std::vector<std::uint32_t> epoch_permutation(std::uint64_t seed, std::uint32_t epoch, std::int64_t size) {
  auto order = identity(size);
  core::Random random(seed, core::Purpose::shuffle, epoch);
  for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

Sampler::Sampler(std::uint64_t seed, std::int64_t size, Order order) : seed_(seed), size_(size), order_(order) {}

std::shared_ptr<const std::vector<std::uint32_t>> Sampler::permutation(std::uint32_t epoch) const {
  const std::lock_guard lock(mutex_);
  if (!latest_ || (epoch_ != epoch && order_ == Order::shuffled)) {
    latest_ = std::make_shared<const std::vector<std::uint32_t>>(
        order_ == Order::shuffled ? epoch_permutation(seed_, epoch, size_) : identity(size_));
    epoch_ = epoch;
  }
  return latest_;
}

}  // namespace troupe::data
