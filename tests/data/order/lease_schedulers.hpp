/// Lease schedulers for tests, and helpers for all of them.
#pragma once

#include <stdexcept>
#include <utility>
#include <vector>

#include "data/order/lease.hpp"

namespace troupe::data {

inline LeaseOptions equal_of(std::int64_t epoch_size, std::vector<std::int64_t> batches, std::uint32_t epochs = 1,
                             bool drop_tail = false) {
  return {epoch_size, epochs, std::move(batches), Sharing::equal, drop_tail};
}

inline LeaseOptions on_demand_of(std::int64_t epoch_size, std::vector<std::int64_t> batches, std::uint32_t epochs = 1,
                                 bool drop_tail = false) {
  return {epoch_size, epochs, std::move(batches), Sharing::on_demand, drop_tail};
}

/// A scheduler for options without errors.
inline LeaseScheduler scheduler_of(const LeaseOptions& options) {
  auto leases = LeaseScheduler::create(options);
  if (!leases) throw std::logic_error(leases.error().message);
  return *std::move(leases);
}

/// The positions of the permutation that a lease covers, in order.
inline std::vector<std::int64_t> positions(const Lease& lease, std::int64_t epoch_size) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < lease.count; ++i) result.push_back((lease.first + i) % epoch_size);
  return result;
}

}  // namespace troupe::data
