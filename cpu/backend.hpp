/// The CPU backend: graphs compiled to oneDNN primitives on the host's cores. The contract of a Replica is in nn/backend.hpp; this
/// backend adds:
///   - float32 only (see Capabilities; otherwise Errc::config from compile), device 0 only, graphs that are chains;
///   - CompileOptions::threads are OpenMP threads of the thread that owns the replica, set at every entry;
///   - convolution weights have the layout that their gradient's kernel writes, oneDNN's or Troupe's; weights of grouped convolutions and
///     all else are plain (cpu/layers/convolution.cpp, cpu/layers/pooled_convolution.cpp);
///   - backward updates the training statistics: a step that fails on a label does not change them. Code may write to statistics()
///     between two steps without a notification;
///   - a steady step allocates only oneDNN's argument tables, except in convolutions of so few channels per group that oneDNN falls
///     back to its matrix product, which packs into buffers of its own;
///   - choices follow fixed rules, so compiling twice on one kind of machine gives one plan without measuring. A plan from another
///     machine pins layouts and implementations; Errc::config if this CPU or library lacks them.
/// Same plan, same threads, same inputs: the same bits.
#pragma once

#include <memory>

#include "nn/backend.hpp"

namespace troupe::cpu {

[[nodiscard]] std::unique_ptr<nn::Backend> make_backend();

}  // namespace troupe::cpu
