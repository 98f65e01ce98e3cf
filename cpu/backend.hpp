/// The CPU backend: graphs compiled to oneDNN primitives on the host's cores. What a Replica does is nn/backend.hpp's
/// contract; this backend adds:
///   - float32 only (Capabilities says so; Errc::config from compile otherwise), device 0 only, graphs that are chains;
///   - CompileOptions::threads are OpenMP threads of the thread that owns the replica, set at every entry;
///   - convolution weights lie as their gradient's kernel writes them, oneDNN's or ours, everything else is plain; so do weights of
///     grouped convolutions (cpu/layers/convolution.cpp, cpu/layers/pooled_convolution.cpp);
///   - training statistics move in backward: a step that fails on a label leaves them alone. Whoever writes to statistics() between two
///     steps needs to say nothing;
///   - a steady step allocates nothing but oneDNN's argument tables, except in convolutions of so few channels per group that oneDNN
///     falls back to its matrix product, which packs into buffers of its own;
///   - choices follow fixed rules, so compiling twice on one kind of machine gives one plan without measuring. A plan from
///     another machine pins layouts and implementations; Errc::config when this CPU or library has not got them.
/// Same plan, same threads, same inputs: the same bits.
#pragma once

#include <memory>

#include "nn/backend.hpp"

namespace troupe::cpu {

[[nodiscard]] std::unique_ptr<nn::Backend> make_backend();

}  // namespace troupe::cpu
