#include "nn/layout.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "nn/graph.hpp"
#include "nn/hash.hpp"

namespace troupe::nn {
namespace {

/// Trailing dimensions are folded into one table of at most this many entries: long inner loops, tables within the L1 cache.
constexpr std::size_t kInnerTableLimit = 2048;

std::int64_t element_count(const TensorLayout& tensor) {
  std::int64_t count = 1;
  for (const auto extent : tensor.shape) count *= extent;
  return count;
}

/// The formula of TensorLayout is a sum with one term per dimension; these are the terms of dimension `d` for every index.
std::vector<std::int64_t> dimension_terms(const TensorLayout& tensor, std::size_t d) {
  struct Part {
    std::int64_t size;
    std::int64_t stride;
  };
  std::vector<Part> parts;  // this dimension's inner blocks, outermost first
  std::int64_t inner_stride = 1;
  std::int64_t block = 1;
  for (auto it = tensor.inner.rbegin(); it != tensor.inner.rend(); ++it) {
    if (static_cast<std::size_t>(it->dimension) == d) {
      parts.insert(parts.begin(), {it->size, inner_stride});
      block *= it->size;
    }
    inner_stride *= it->size;
  }
  std::vector<std::int64_t> terms(static_cast<std::size_t>(tensor.shape[d]));
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    std::int64_t rest = index % block;
    std::int64_t divisor = block;
    terms[i] = index / block * tensor.strides[d];
    for (const auto& part : parts) {
      divisor /= part.size;
      terms[i] += rest / divisor * part.stride;
      rest %= divisor;
    }
  }
  return terms;
}

/// The greatest of dimension_terms(). Those of a large tensor of one dimension would take twice its memory.
std::int64_t greatest_term(const TensorLayout& tensor, std::size_t d) {
  const bool is_blocked = std::ranges::any_of(
      tensor.inner, [d](const auto& block) { return static_cast<std::size_t>(block.dimension) == d; });
  return is_blocked ? std::ranges::max(dimension_terms(tensor, d)) : (tensor.shape[d] - 1) * tensor.strides[d];
}

/// Whether arena order is canonical order.
bool is_row_major(const TensorLayout& tensor) {
  std::int64_t stride = 1;
  for (std::size_t d = tensor.shape.size(); d-- > 0; stride *= tensor.shape[d])
    if (tensor.strides[d] != stride) return false;
  return tensor.inner.empty();
}

/// Positions of a whole tensor: canonical order iterates over `outer` (slowest first), then over `inner`.
struct Positions {
  std::vector<std::vector<std::int64_t>> outer;
  std::vector<std::int64_t> inner{0};  // not those of a row-major tensor
  std::size_t inner_size = 1;
  bool inner_contiguous = true;
};

Positions positions(const TensorLayout& tensor) {
  Positions result;
  if (is_row_major(tensor)) {
    result.inner_size = static_cast<std::size_t>(element_count(tensor));
    return result;
  }
  std::size_t d = tensor.shape.size();
  while (d > 0 && result.inner.size() * static_cast<std::size_t>(tensor.shape[d - 1]) <= kInnerTableLimit) {
    --d;
    std::vector<std::int64_t> folded;
    for (const auto term : dimension_terms(tensor, d))
      for (const auto position : result.inner) folded.push_back(term + position);
    result.inner = std::move(folded);
  }
  if (result.inner.size() == 1 && d > 0)
    result.inner = dimension_terms(tensor, --d);  // a last dimension above the limit
  for (std::size_t o = 0; o < d; ++o) result.outer.push_back(dimension_terms(tensor, o));
  for (std::size_t i = 0; i < result.inner.size(); ++i)
    result.inner_contiguous = result.inner_contiguous && result.inner[i] == static_cast<std::int64_t>(i);
  result.inner_size = result.inner.size();
  return result;
}

/// Calls run(first arena position) for every run of `inner` in canonical order.
template <class Run>
void for_each_run(const TensorLayout& tensor, const Positions& where, Run run) {
  std::vector<std::size_t> index(where.outer.size(), 0);
  for (;;) {
    std::int64_t base = tensor.offset;
    for (std::size_t d = 0; d < index.size(); ++d) base += where.outer[d][index[d]];
    run(base);
    std::size_t d = index.size();
    while (d > 0 && ++index[d - 1] == where.outer[d - 1].size()) index[--d] = 0;
    if (d == 0) return;
  }
}

void check(const TensorLayout& tensor, std::size_t arena_floats) {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument(fmt::format("layout of \"{}\": {}", tensor.name, why));
  };
  if (tensor.strides.size() != tensor.shape.size())
    refuse(fmt::format("{} strides for {} dimensions", tensor.strides.size(), tensor.shape.size()));
  for (std::size_t d = 0; d < tensor.shape.size(); ++d)
    if (tensor.shape[d] < 1 || tensor.strides[d] < 0) refuse("an extent below 1 or a negative stride");
  for (const auto& block : tensor.inner)
    if (block.size < 1 || block.dimension < 0 || static_cast<std::size_t>(block.dimension) >= tensor.shape.size())
      refuse(fmt::format("inner block {} of dimension {}", block.size, block.dimension));
  if (tensor.offset < 0 || tensor.offset % static_cast<std::int64_t>(core::kAlignmentFloats) != 0)
    refuse(fmt::format("offset {} is not a multiple of {}", tensor.offset, core::kAlignmentFloats));
  if (tensor.offset + tensor.extent > static_cast<std::int64_t>(arena_floats))
    refuse(fmt::format("it ends at {}, the arena at {}", tensor.offset + tensor.extent, arena_floats));
  std::int64_t last = 0;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) last += greatest_term(tensor, d);
  if (last >= tensor.extent) refuse(fmt::format("an element lies at {}, beyond its extent {}", last, tensor.extent));
}

void check_disjoint(const std::vector<TensorLayout>& tensors) {
  std::vector<const TensorLayout*> sorted;
  sorted.reserve(tensors.size());
  for (const auto& tensor : tensors) sorted.push_back(&tensor);
  std::ranges::sort(sorted, {}, &TensorLayout::offset);
  for (std::size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i - 1]->offset + sorted[i - 1]->extent > sorted[i]->offset)
      throw std::invalid_argument(
          fmt::format("layouts of \"{}\" and \"{}\" overlap", sorted[i - 1]->name, sorted[i]->name));
}

void check_sizes(const Layout& layout, std::size_t arena, std::size_t canonical) {
  if (arena != layout.arena_floats() || canonical != layout.canonical_floats())
    throw std::invalid_argument(
        fmt::format("conversion between {} arena and {} canonical floats with a layout of {} and {}", arena, canonical,
                    layout.arena_floats(), layout.canonical_floats()));
}

/// A row-major tensor; its offset is set later. A scalar is laid out as [1].
TensorLayout plain_tensor(std::string name, std::vector<std::int64_t> shape) {
  if (shape.empty()) shape = {1};
  TensorLayout tensor;
  tensor.name = std::move(name);
  tensor.shape = std::move(shape);
  tensor.extent = element_count(tensor);
  tensor.strides.assign(tensor.shape.size(), 1);
  for (std::size_t d = tensor.shape.size(); d-- > 1;) tensor.strides[d - 1] = tensor.strides[d] * tensor.shape[d];
  return tensor;
}

Layout one_after_another(std::vector<TensorLayout> tensors) {
  std::size_t offset = 0;
  for (auto& tensor : tensors) {
    tensor.offset = static_cast<std::int64_t>(offset);
    offset += core::align_floats(static_cast<std::size_t>(tensor.extent));
  }
  return {std::move(tensors), offset};
}

}  // namespace

Layout::Layout(std::vector<TensorLayout> tensors, std::size_t arena_floats)
    : tensors_(std::move(tensors)), arena_floats_(arena_floats) {
  if (arena_floats % core::kAlignmentFloats != 0)
    throw std::invalid_argument(
        fmt::format("an arena of {} floats is not a multiple of {}", arena_floats, core::kAlignmentFloats));
  std::string text = fmt::format("arena {}\n", arena_floats);
  for (const auto& tensor : tensors_) {
    check(tensor, arena_floats);
    canonical_floats_ += static_cast<std::size_t>(element_count(tensor));
    text += fmt::format("{} {} {} {} {}", tensor.name, tensor.shape, tensor.offset, tensor.extent, tensor.strides);
    for (const auto& block : tensor.inner) text += fmt::format(" {}:{}", block.dimension, block.size);
    text += '\n';
  }
  check_disjoint(tensors_);
  fingerprint_ = hash64(std::as_bytes(std::span(text)));
}

void Layout::to_canonical(core::ConstSpan arena, core::Span canonical) const {
  check_sizes(*this, arena.size(), canonical.size());
  float* out = canonical.data();
  for (const auto& tensor : tensors_) {
    const Positions where = positions(tensor);
    const auto& inner = where.inner;
    for_each_run(tensor, where, [&](std::int64_t base) {
      const float* in = arena.data() + base;
      if (where.inner_contiguous)
        std::memcpy(out, in, where.inner_size * sizeof(float));
      else
        for (std::size_t i = 0; i < inner.size(); ++i) out[i] = in[inner[i]];
      out += where.inner_size;
    });
  }
}

void Layout::from_canonical(core::ConstSpan canonical, core::Span arena) const {
  check_sizes(*this, arena.size(), canonical.size());
  std::ranges::fill(arena, 0.0f);
  const float* in = canonical.data();
  for (const auto& tensor : tensors_) {
    const Positions where = positions(tensor);
    const auto& inner = where.inner;
    for_each_run(tensor, where, [&](std::int64_t base) {
      float* out = arena.data() + base;
      if (where.inner_contiguous)
        std::memcpy(out, in, where.inner_size * sizeof(float));
      else
        for (std::size_t i = 0; i < inner.size(); ++i) out[inner[i]] = in[i];
      in += where.inner_size;
    });
  }
}

Layout plain_layout(const Graph& graph) {
  std::vector<TensorLayout> tensors;
  for (const auto& parameter : graph.parameters()) tensors.push_back(plain_tensor(parameter.name, parameter.shape));
  return one_after_another(std::move(tensors));
}

Layout statistics_layout(const Graph& graph) {
  std::vector<TensorLayout> tensors;
  for (const auto& statistic : graph.statistics())
    tensors.push_back(plain_tensor(statistic.name, {statistic.channels}));
  return one_after_another(std::move(tensors));
}

}  // namespace troupe::nn
