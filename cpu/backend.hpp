/// The CPU backend: graphs compiled to oneDNN primitives on the host's cores. What a Replica does is nn/backend.hpp's
/// contract; this backend adds:
///   - float32 only (Capabilities says so; Errc::config from compile otherwise), device 0 only, graphs that are chains;
///   - CompileOptions::threads are OpenMP threads of the thread that owns the replica, set at every entry;
///   - convolution weights lie as oneDNN's weight gradients want them, everything else is plain (cpu/convolution.cpp);
///   - choices follow fixed rules, so compiling twice on one kind of machine gives one plan without measuring. A plan from
///     another machine pins layouts and implementations; Errc::config when this CPU or library has not got them.
/// Same plan, same threads, same inputs: the same bits.
#pragma once

#include <memory>

#include "nn/backend.hpp"

namespace troupe::cpu {

[[nodiscard]] std::unique_ptr<nn::Backend> make_backend();

}  // namespace troupe::cpu
