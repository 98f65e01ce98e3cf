/// How a call's run-time properties become types. Used by the launches of this folder only. Thread rule: pure functions.
#pragma once

#include <type_traits>
#include <utility>

#include "gpu/kernels/bodies/flat.hpp"
#include "gpu/kernels/bodies/groups.hpp"
#include "gpu/kernels/types.hpp"

namespace troupe::gpu::launches {

template <class T>
struct As {
  using type = T;
};
template <int kValue>
using Number = std::integral_constant<int, kValue>;

/// use(As<element type>{})
template <class Use>
void with_type(Type type, const Use& use) {
  switch (type) {
    case Type::fp32: return use(As<float>{});
    case Type::bf16: return use(As<Bf16>{});
    case Type::fp16: return use(As<Fp16>{});
  }
}

/// use(Number<lanes of the widest access>{}) or use(Number<1>{})
template <class T, class Use>
void with_lanes(bool wide, const Use& use) {
  if (wide)
    use(Number<kLanesOf<T>>{});
  else
    use(Number<1>{});
}

/// Tensors [pixels, channels] of one type: use(As<T>{}, Number<lanes>{}). All pointers are tensors of that type or arrays over the channels.
template <class Use, class... Pointers>
void with_groups(Type type, std::int64_t channels, const Use& use, const Pointers*... pointers) {
  with_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_lanes<T>(takes_wide<T>(channels, pointers...), [&](auto lanes) { use(tag, lanes); });
  });
}

template <class T>
[[nodiscard]] T* to(void* pointer) {
  return static_cast<T*>(pointer);
}
template <class T>
[[nodiscard]] const T* of(const void* pointer) {
  return static_cast<const T*>(pointer);
}

template <class Launcher, class Body>
void elements(Launcher& launcher, const Body& body, std::int64_t count) {
  if (count > 0) launcher.elements(body, count);
}
template <class Launcher, class Body>
void blocks(Launcher& launcher, const Body& body) {
  if (body.blocks() > 0) launcher.blocks(body);
}
template <class Launcher, class Body, class... Pointers>
void flat(Launcher& launcher, const Body& body, std::int64_t count, const Pointers*... pointers) {
  const Flat<Body> each{body, count, are_aligned(pointers...)};
  elements(launcher, each, each.indices());
}

}  // namespace troupe::gpu::launches
