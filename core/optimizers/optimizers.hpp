/// The table of optimizers: the only place that lists them. Options, help, strategies, kernels and the schedule search take names and
/// properties from it. To add one: an enumerator, a row, and its arithmetic in core/kernels_reference.cpp and core/kernels_loops.hpp.
/// Constant data and pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::core {

/// Element-wise optimizer rules. The numbers stand in journals: append new ones, never renumber.
enum class OptimizerKind : std::uint8_t {
  sgd,
  momentum,
  nesterov,
  rmsprop,
  adagrad,
  adam,
  adamw,
  adadelta,
  rmsprop_inside
};

/// One optimizer. Its formula stands at OptimizerStep.
struct OptimizerInfo {
  OptimizerKind kind = OptimizerKind::sgd;
  std::string_view name;         ///< in train.optimizer, and of its state in checkpoints
  int state_slots = 0;           ///< state vectors: 0 to 2
  double lr = 0.001;             ///< learning rate with which small networks train: what train.lr = "auto" begins with
  bool velocity = false;         ///< the first is a velocity, the sum of past steps
  bool momentum = false;         ///< reads OptimizerStep::momentum
  bool decay = false;            ///< reads OptimizerStep::decay
  bool epsilon = false;          ///< reads OptimizerStep::epsilon
  bool bias_correction = false;  ///< divides its means by 1 − μ^t and 1 − ρ^t
  bool on_servers = false;       ///< a shard may step with it on the workers' pushes
  bool outer = false;            ///< a shard may step with it on the mean of a round
  double outer_lr = 0;           ///< default learning rate there
  bool variant = false;          ///< an option of another row chooses it: its name is no value of train.optimizer
  bool searched =
      false;  ///< the schedule search draws it for servers; not needed where another has the same kind of state
};

inline constexpr auto kOptimizers = std::to_array<OptimizerInfo>({
    {.kind = OptimizerKind::sgd,
     .name = "sgd",
     .lr = 0.1,
     .on_servers = true,
     .outer = true,
     .outer_lr = 1,
     .searched = true},
    {.kind = OptimizerKind::momentum,
     .name = "momentum",
     .state_slots = 1,
     .lr = 0.05,
     .velocity = true,
     .momentum = true,
     .on_servers = true,
     .searched = true},
    {.kind = OptimizerKind::nesterov,
     .name = "nesterov",
     .state_slots = 1,
     .lr = 0.05,
     .velocity = true,
     .momentum = true,
     .outer = true,
     .outer_lr = 0.7},
    {.kind = OptimizerKind::rmsprop,
     .name = "rmsprop",
     .state_slots = 1,
     .decay = true,
     .epsilon = true,
     .on_servers = true},
    {.kind = OptimizerKind::adagrad,
     .name = "adagrad",
     .state_slots = 1,
     .lr = 0.01,
     .epsilon = true,
     .on_servers = true,
     .searched = true},
    {.kind = OptimizerKind::adam,
     .name = "adam",
     .state_slots = 2,
     .momentum = true,
     .decay = true,
     .epsilon = true,
     .bias_correction = true,
     .on_servers = true,
     .searched = true},
    {.kind = OptimizerKind::adamw,
     .name = "adamw",
     .state_slots = 2,
     .momentum = true,
     .decay = true,
     .epsilon = true,
     .bias_correction = true,
     .on_servers = true},
    {.kind = OptimizerKind::adadelta,
     .name = "adadelta",
     .state_slots = 2,
     .lr = 1,
     .decay = true,
     .epsilon = true,
     .on_servers = true},
    {.kind = OptimizerKind::rmsprop_inside,
     .name = "rmsprop_inside",
     .state_slots = 1,
     .decay = true,
     .epsilon = true,
     .on_servers = true,
     .variant = true},
});
inline constexpr std::size_t kOptimizerKinds = kOptimizers.size();

/// The row of a kind. Throws std::out_of_range for a number that is no kind.
[[nodiscard]] constexpr const OptimizerInfo& optimizer_info(OptimizerKind kind) {
  return kOptimizers.at(static_cast<std::size_t>(kind));
}
/// The row of a name that options offer. Throws std::invalid_argument, with these names, for any other text: options are checked before.
[[nodiscard]] const OptimizerInfo& optimizer_info(std::string_view name);

/// The kind of `info` with its ε inside the root or outside. Only rmsprop has both.
[[nodiscard]] constexpr OptimizerKind with_epsilon(const OptimizerInfo& info, bool inside) {
  return inside && info.kind == OptimizerKind::rmsprop ? OptimizerKind::rmsprop_inside : info.kind;
}

/// The names that options offer, in the order of the table: all, or those that have the property:
/// optimizer_names(&OptimizerInfo::outer).
[[nodiscard]] std::vector<std::string> optimizer_names();
[[nodiscard]] std::vector<std::string> optimizer_names(bool OptimizerInfo::*property);

[[nodiscard]] constexpr int state_slots(OptimizerKind kind) { return optimizer_info(kind).state_slots; }

/// Row k is the row of kind k.
static_assert([] {
  for (std::size_t k = 0; k < kOptimizerKinds; ++k)
    if (kOptimizers[k].kind != static_cast<OptimizerKind>(k)) return false;
  return true;
}());

}  // namespace troupe::core
