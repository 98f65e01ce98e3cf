/// The weights of a model from a safetensors file of any program: a checkpoint of Troupe, or a state_dict of PyTorch with torchvision's
/// names. Tensors may be F32, F16 or BF16. Thread rule: pure functions of files.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/kernels.hpp"
#include "nn/checkpoint/safetensors.hpp"
#include "nn/graph.hpp"

namespace troupe::nn {

/// A file with weights. One that Troupe wrote has a step, and its checksums were compared.
struct WeightsFile {
  SafetensorsFile file;
  std::optional<std::int64_t> step{};  // none: another program's
};

/// Reads what weights_from() takes for `graph`; of other tensors the file knows only name and shape. Memory: that of the model's tensors,
/// and a few times the header's, however large the file. Errc::corrupt names file, tensor and error; Errc::io: the file cannot be read.
[[nodiscard]] core::Result<WeightsFile> read_weights(const std::string& path, const Graph& graph);

/// Reads no tensor: what the file says of itself. Errors as read_weights().
[[nodiscard]] core::Result<WeightsFile> read_weights_description(const std::string& path);

enum class Fit : std::uint8_t {
  whole,    ///< every tensor of the model is in the file, and every tensor of the file in the model
  partial,  ///< tensors that fit are taken, and the others keep their values: another classifier, for example
};

/// What became of the tensors. Lines are "tensor "fc.weight": why".
struct TakenWeights {
  std::size_t taken = 0;               // tensors, running statistics included
  std::vector<std::string> kept;       // tensors of the model that the file does not have, or not in this shape
  std::vector<std::string> left_over;  // tensors of the file that the model does not have
};

/// Fills `parameters` (canonical) and `statistics` (canonical, statistics_layout(graph)) from `file`. With Fit::partial they hold initial
/// values before. What a checkpoint has besides its model (optimizer state) and PyTorch's counters (bn1.num_batches_tracked) is no
/// difference. Errc::config names the file and the first differences with the shapes that are wanted and found; with Fit::partial only if
/// no tensor fits. Errc::data: a value that is not finite, a negative variance. REQUIRES: sizes that fit the graph, and a file that is in memory or was read
/// for this graph (std::invalid_argument).
[[nodiscard]] core::Result<TakenWeights> weights_from(const SafetensorsFile& file, const Graph& graph,
                                                      core::Span parameters, core::Span statistics, Fit fit);

/// At most `most` of the lines, and how many more there are: "a; b; and 3 more".
[[nodiscard]] std::string first_lines(const std::vector<std::string>& lines, std::size_t most);

}  // namespace troupe::nn
