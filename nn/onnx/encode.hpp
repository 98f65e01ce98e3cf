/// A trained model as an ONNX file (onnx.ai; operator set 13), which other programs run: evaluation, without dropout and auxiliary heads.
/// Input "images" [batch, channels, height, width], output "logits" [batch, outputs]: the last layer's outputs without a softmax; batch is
/// free. Weights have the model's names. Thread rule: pure functions.
#pragma once

#include <map>
#include <string>

#include "core/error.hpp"
#include "core/kernels.hpp"
#include "nn/graph.hpp"

namespace troupe::nn {

/// The bytes of the file. `parameters` and `statistics` are canonical; `metadata`: texts for readers (metadata_props); `version`: of
/// Troupe. Memory: three times the weights. Errc::config: the model needs more than the 2 GB that the format allows. REQUIRES: sizes that fit
/// the graph (std::invalid_argument).
[[nodiscard]] core::Result<std::string> encode_onnx(const Graph& graph, core::ConstSpan parameters,
                                                    core::ConstSpan statistics,
                                                    const std::map<std::string, std::string>& metadata,
                                                    const std::string& version);

}  // namespace troupe::nn
