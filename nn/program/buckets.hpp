/// The arena of gradients in buckets. Compile time only. Thread rule: pure.
#pragma once

#include <cstddef>
#include <vector>

#include "nn/backend.hpp"

namespace troupe::nn {

/// Gradients of at least so many floats make a bucket: small ones are not worth an exchange of their own.
inline constexpr std::size_t kBucketFloats = (std::size_t{256} << 10) / sizeof(float);

struct CutBuckets {
  std::vector<Bucket> buckets;  // in backward order
  std::vector<int> last_nodes;  // of each: the graph's node that finishes it
};

/// Buckets of at least `floats` floats (except the last), cut between nodes, from the arena's tail: backward runs from the last
/// node to the first.
[[nodiscard]] CutBuckets cut_buckets(const Graph& graph, const Layout& layout, std::size_t floats);

}  // namespace troupe::nn
