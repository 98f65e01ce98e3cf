/// The tags of the transfers into this process. MPI matches a message by its sender's rank and its tag, so receives under way from one
/// rank have different tags; those of different ranks may share one. Not thread-safe.
#pragma once

#include <set>
#include <utility>

#include "core/error.hpp"

namespace troupe::transport {

class TransferTags {
 public:
  /// `bound`: the largest tag of this MPI, which depends on what moves its messages. 2^15 − 1, the least that MPI's standard
  /// allows, is enough: a credit bounds the receives under way. Errc::config: it is less.
  [[nodiscard]] static core::Result<TransferTags> below(int bound);

  /// A tag that no transfer from `rank` has. Cost: O(log n), n the transfers under way. Throws std::length_error: all are in use.
  [[nodiscard]] int take(int rank);
  /// The transfer has ended, and no message with its tag can still come.
  void give_back(int rank, int tag);

 private:
  explicit TransferTags(int count) noexcept : count_(count) {}

  int count_;  // of tags: 0 to count_ − 1
  int last_ = 0;
  std::set<std::pair<int, int>> in_use_;  // rank, tag
};

}  // namespace troupe::transport
