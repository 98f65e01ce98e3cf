/// Launches of core::Kernels' calls over flat float32 vectors. Thread rule: pure functions.
#pragma once

#include "gpu/kernels/bodies/norms.hpp"
#include "gpu/kernels/bodies/optimizers.hpp"
#include "gpu/kernels/bodies/vectors.hpp"
#include "gpu/kernels/kernel.hpp"
#include "gpu/kernels/launch/choose.hpp"

namespace troupe::gpu::launches {

template <class Launcher>
void launch(const Fill& k, Launcher& launcher) {
  flat(launcher, FillBody{k.y, k.value}, k.count, k.y);
}
template <class Launcher>
void launch(const Scale& k, Launcher& launcher) {
  flat(launcher, UpdateBody<ScaleOp>{k.y, {k.a}}, k.count, k.y);
}
template <class Launcher>
void launch(const ScaleBy& k, Launcher& launcher) {
  flat(launcher, UpdateBody<ScaleByOp>{k.y, {k.a}}, k.count, k.y);
}
template <class Launcher>
void launch(const Clamp& k, Launcher& launcher) {
  flat(launcher, UpdateBody<ClampOp>{k.y, {k.limit}}, k.count, k.y);
}
template <class Launcher>
void launch(const Axpy& k, Launcher& launcher) {
  flat(launcher, CombineBody<AxpyOp>{k.y, k.y, k.x, {k.a}}, k.count, k.y, k.x);
}
template <class Launcher>
void launch(const ScaleAdd& k, Launcher& launcher) {
  flat(launcher, CombineBody<ScaleAddOp>{k.y, k.y, k.x, {k.a, k.b}}, k.count, k.y, k.x);
}
template <class Launcher>
void launch(const Difference& k, Launcher& launcher) {
  flat(launcher, CombineBody<DifferenceOp>{k.y, k.a, k.b, {}}, k.count, k.y, k.a, k.b);
}
template <class Launcher>
void launch(const ElasticPair& k, Launcher& launcher) {
  flat(launcher, ElasticBody<false>{k.x, k.center, k.alpha_worker, k.alpha_center}, k.count, k.x, k.center);
}
template <class Launcher>
void launch(const ElasticDelta& k, Launcher& launcher) {
  flat(launcher, ElasticBody<true>{k.x, k.center, k.alpha_worker, k.alpha_center}, k.count, k.x, k.center);
}
template <class Launcher>
void launch(const ReduceAll& k, Launcher& launcher) {
  static_assert(kMostVectors == std::tuple_size_v<decltype(k.all)>);
  ReduceAllBody body{{}, k.vectors, k.scale};
  bool wide = true;
  for (int v = 0; v < k.vectors; ++v) {
    body.all[v] = k.all[static_cast<std::size_t>(v)];
    wide = wide && is_aligned(body.all[v]);
  }
  const Flat<ReduceAllBody> each{body, k.count, wide};
  elements(launcher, each, each.indices());
}
template <class Launcher>
void launch(const Narrow& k, Launcher& launcher) {
  if (k.kind == core::HalfKind::bf16)
    flat(launcher, CastBody<float, Bf16>{k.x, reinterpret_cast<Bf16*>(k.y)}, k.count, k.x, k.y);
  else
    flat(launcher, CastBody<float, Fp16>{k.x, reinterpret_cast<Fp16*>(k.y)}, k.count, k.x, k.y);
}
template <class Half, class Launcher>
void widen(const Widen& k, Launcher& launcher) {
  const auto* x = reinterpret_cast<const Half*>(k.x);
  if (k.add)
    flat(launcher, AddWideBody<Half>{k.y, x}, k.count, k.y, k.x);
  else
    flat(launcher, CastBody<Half, float>{x, k.y}, k.count, k.y, k.x);
}
template <class Launcher>
void launch(const Widen& k, Launcher& launcher) {
  if (k.kind == core::HalfKind::bf16)
    widen<Bf16>(k, launcher);
  else
    widen<Fp16>(k, launcher);
}

template <core::OptimizerKind kKind, class Launcher>
void optimize(const Optimize& k, Launcher& launcher) {
  const auto run = [&](auto delta) {
    flat(launcher, OptimizeBody<kKind, decltype(delta)::value>{k.x, k.g, k.first, k.second, k.numbers}, k.count, k.x,
         k.g, state_vectors(kKind) > 0 ? k.first : nullptr, state_vectors(kKind) > 1 ? k.second : nullptr);
  };
  if (k.delta)
    run(std::true_type{});
  else
    run(std::false_type{});
}
template <class Launcher>
void launch(const Optimize& k, Launcher& launcher) {
  using enum core::OptimizerKind;
  switch (k.kind) {
    case sgd: return optimize<sgd>(k, launcher);
    case momentum: return optimize<momentum>(k, launcher);
    case nesterov: return optimize<nesterov>(k, launcher);
    case rmsprop: return optimize<rmsprop>(k, launcher);
    case adagrad: return optimize<adagrad>(k, launcher);
    case adam: return optimize<adam>(k, launcher);
    case adamw: return optimize<adamw>(k, launcher);
    case adadelta: return optimize<adadelta>(k, launcher);
    case rmsprop_inside: return optimize<rmsprop_inside>(k, launcher);
  }
}

template <class Launcher>
void launch(const SquaredNorm& k, Launcher& launcher) {
  blocks(launcher, NormChunksBody{k.x, k.chunks, k.count});
  blocks(launcher, NormTotalBody{k.chunks, ceil_div(k.count, NormChunksBody::kChunk), k.result});
}
template <class Launcher>
void launch(const LimitNorm& k, Launcher& launcher) {
  flat(launcher, LimitNormBody{k.y, k.squared_norm, k.norm}, k.count, k.y);
}
template <class Launcher>
void launch(const AllWithin& k, Launcher& launcher) {
  elements(launcher, SetFlagBody{k.result}, 1);
  flat(launcher, AllWithinBody{k.x, k.limit, k.result}, k.count, k.x);
}

}  // namespace troupe::gpu::launches
