/// The position of each canonical parameter in a Replica's flat arena. Backends choose blocked layouts; all other code converts
/// through a Layout. A Layout is an immutable value made once at compile time; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/kernels.hpp"

namespace troupe::nn {

/// One tensor in the arena: element (i0, i1, …) of the canonical shape is at
///   offset + Σ_d (i_d / block_d) · stride_d + position within the inner blocks (inner blocks are nested in the order given).
/// A plain row-major tensor has no inner blocks. This is oneDNN's blocked format; NHWC is a special case.
struct TensorLayout {
  struct InnerBlock {
    int dimension = 0;
    std::int64_t size = 1;
    bool operator==(const InnerBlock&) const = default;
  };
  std::string name;                   // canonical: "conv1.weight"
  std::vector<std::int64_t> shape;    // canonical
  std::int64_t offset = 0;            // floats from the arena's start; a multiple of kAlignmentFloats
  std::int64_t extent = 0;            // floats that it takes, with padding
  std::vector<std::int64_t> strides;  // floats per outer block of each dimension
  std::vector<InnerBlock> inner;      // outermost first; may name one dimension more than once
  bool operator==(const TensorLayout&) const = default;
};

class Graph;

class Layout {
 public:
  Layout() = default;
  /// `tensors` in canonical order; their offsets in any order. REQUIRES: each fits its extent and the arena, and none overlap
  /// (std::invalid_argument names the tensor).
  Layout(std::vector<TensorLayout> tensors, std::size_t arena_floats);

  [[nodiscard]] const std::vector<TensorLayout>& tensors() const noexcept { return tensors_; }
  [[nodiscard]] std::size_t arena_floats() const noexcept { return arena_floats_; }  ///< multiple of kAlignmentFloats
  /// Σ of the tensors' sizes.
  [[nodiscard]] std::size_t canonical_floats() const noexcept { return canonical_floats_; }
  /// XXH3-64 of all the above: with equal fingerprints, arenas can be exchanged without conversion.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return fingerprint_; }

  /// Converts an arena-shaped vector (parameters, gradients, velocity) to the canonical one: the tensors row-major, in order,
  /// dense. REQUIRES: spans of arena_floats() and canonical_floats() (std::invalid_argument). One gathering pass; allocates small
  /// tables.
  void to_canonical(core::ConstSpan arena, core::Span canonical) const;
  /// The reverse; padding becomes zero.
  void from_canonical(core::ConstSpan canonical, core::Span arena) const;

 private:
  std::vector<TensorLayout> tensors_;
  std::size_t arena_floats_ = 0;
  std::size_t canonical_floats_ = 0;
  std::uint64_t fingerprint_ = 0;
};

/// Every parameter row-major in canonical order, each starting at a multiple of kAlignmentFloats.
[[nodiscard]] Layout plain_layout(const Graph& graph);

/// The statistics arena of every backend (Replica::statistics): the graph's statistics in canonical order, each [channels], plain,
/// starting at a multiple of kAlignmentFloats. The gaps are and stay zero. 0 floats for a graph without statistics.
[[nodiscard]] Layout statistics_layout(const Graph& graph);

}  // namespace troupe::nn
