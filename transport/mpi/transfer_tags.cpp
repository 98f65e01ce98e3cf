#include "transport/mpi/transfer_tags.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

constexpr int kLeastBound = (1 << 15) - 1;
constexpr int kMostTags = 1 << 30;

}  // namespace

core::Result<TransferTags> TransferTags::below(int bound) {
  if (bound < kLeastBound)
    return core::fail(
        core::Errc::config,
        fmt::format("endpoint 'mpi': this MPI has too few message tags: MPI_TAG_UB is {}, and {} is needed", bound,
                    kLeastBound));
  return TransferTags(std::min(bound, kMostTags));
}

int TransferTags::take(int rank) {
  for (int tried = 0; tried < count_; ++tried) {
    last_ = (last_ + 1) % count_;
    if (in_use_.emplace(rank, last_).second) return last_;
  }
  throw std::length_error(
      fmt::format("endpoint 'mpi': more than {} transfers from rank {} are under way", count_, rank));
}

void TransferTags::give_back(int rank, int tag) { in_use_.erase({rank, tag}); }

}  // namespace troupe::transport
