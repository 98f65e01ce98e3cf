/// Element body that copies channels between tensors of different widths. It moves bits, kBytes at once. Thread rule: plain values.
#pragma once

#include "gpu/kernels/bodies/groups.hpp"

namespace troupe::gpu {

/// What one index moves: a type with the size and alignment of kBytes.
template <int kBytes>
struct UnitOf {
  using type = Words<kBytes>;
};
template <>
struct UnitOf<2> {
  using type = std::uint16_t;
};

/// Counts are units of kBytes.
template <int kBytes>
struct CopyChannelsBody {
  using Unit = typename UnitOf<kBytes>::type;
  const void* from;
  void* to;
  std::int64_t from_row;  // units of a pixel of `from`
  std::int64_t from_first;
  std::int64_t to_row;
  std::int64_t to_first;
  Groups<1> groups;  // [pixels, units]
  TROUPE_HOST_DEVICE void operator()(std::int64_t index) const {
    const auto [pixel, unit] = groups(index);
    static_cast<Unit*>(to)[pixel * to_row + to_first + unit] =
        static_cast<const Unit*>(from)[pixel * from_row + from_first + unit];
  }
};

}  // namespace troupe::gpu
