/// Converts between canonical vectors and named tensors: the form of parameters and optimizer state in a checkpoint. With an empty
/// prefix the names are the graph's ("conv1.weight"), so PyTorch reads the file as a state_dict. Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/kernels.hpp"
#include "nn/checkpoint/safetensors.hpp"
#include "nn/graph.hpp"

namespace troupe::nn {

inline constexpr std::string_view kVelocityPrefix = "optimizer.velocity.";  // or an optimizer's first or only state
inline constexpr std::string_view kSquarePrefix = "optimizer.square.";      // adam's second

/// The key of the metadata that names the tensors of bytes with the state of optimizers that Troupe does not compute, separated by spaces.
inline constexpr std::string_view kOwnStatesKey = "own_states";
[[nodiscard]] std::vector<std::string> own_state_names(const SafetensorsFile& file);

/// "worker.3.", the prefix of one worker's own state, as in worker_prefix(3) + kVelocityPrefix.
[[nodiscard]] std::string worker_prefix(int worker);

/// The tensor's shape in older checkpoints, which have a program's scalars as [1] and its statistics as rows. It is read, too.
[[nodiscard]] std::vector<std::int64_t> older_shape(const Parameter& parameter);
[[nodiscard]] std::vector<std::int64_t> older_shape(const Statistic& statistic);

/// One view into `canonical` per parameter, named prefix + parameter name. `canonical` must outlive the views. REQUIRES:
/// canonical.size() == graph.parameter_count() (std::invalid_argument).
[[nodiscard]] std::vector<TensorView> canonical_tensors(const Graph& graph, core::ConstSpan canonical,
                                                        std::string_view prefix = {});

/// The reverse: fills `canonical` from `file`. Errc::config names the file and the first tensor that is missing or has a wrong
/// shape; `canonical` is then partly written. REQUIRES: as above.
[[nodiscard]] core::Result<void> canonical_from(const SafetensorsFile& file, const Graph& graph, core::Span canonical,
                                                std::string_view prefix = {});

/// The same for running statistics, by their own names ("bn1.running_mean"): `canonical` in the order of statistics_layout(graph).
[[nodiscard]] std::vector<TensorView> statistics_tensors(const Graph& graph, core::ConstSpan canonical);
[[nodiscard]] core::Result<void> statistics_from(const SafetensorsFile& file, const Graph& graph, core::Span canonical);

}  // namespace troupe::nn
