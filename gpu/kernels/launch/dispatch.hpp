/// From a call to its bodies. A Launcher has
///   elements(body, count)   runs body(index) for each index in [0, count), in any order; count > 0
///   blocks(body)            runs body.phase(p, block, thread, shared) for each block in [0, body.blocks()), p = 0 … Body::kPhases − 1 and each
///                           thread in [0, Body::kThreads): a barrier of the block after each phase, one Body::Shared for each block. Blocks and
///                           the threads of a phase run in any order. Shared is trivial, undefined at first, below 48 KiB; blocks() may
///                           exceed 2^31. A thread that runs several blocks passes a barrier between them (after the last phase).
/// Bodies are trivially copyable and below 4 KiB; they hold pointers to device memory and numbers, nothing else. A call makes one launch or
/// two, in order: the second reads what the first wrote, on the same stream. What a launch fails with is the Launcher's to keep.
/// For CUDA: compile with -fmad=false (gpu/kernels/portable.hpp says why); no other flag that changes arithmetic (-use_fast_math, -ftz,
/// -prec-div, -prec-sqrt). Thread rule: pure function.
#pragma once

#include <variant>

#include "gpu/kernels/launch/checksum.hpp"
#include "gpu/kernels/launch/layers.hpp"
#include "gpu/kernels/launch/pointwise.hpp"
#include "gpu/kernels/launch/vectors.hpp"

namespace troupe::gpu {

template <class Launcher>
void dispatch(const Kernel& kernel, Launcher&& launcher) {
  std::visit([&](const auto& call) { launches::launch(call, launcher); }, kernel);
}

}  // namespace troupe::gpu
