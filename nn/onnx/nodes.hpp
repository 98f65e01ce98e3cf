/// Writes the nodes of a graph as ONNX's operators. Internal to nn/onnx. Thread rule: plain values.
#pragma once

#include <string>
#include <vector>

#include "nn/graph.hpp"
#include "nn/onnx/onnx.pb.h"

namespace troupe::nn {

/// What a node of the graph computes: the name of its value in the file. A vector of ours may be [batch, n, 1, 1] there or [batch, n].
struct OnnxValue {
  std::string name;
  bool is_image = true;  // [batch, channels, height, width]
  Shape shape;
};

class OnnxNodes {
 public:
  /// `target` must outlive this object; its initialisers already have the graph's parameters and statistics.
  OnnxNodes(const Graph& graph, onnx::Graph& target) : graph_(graph), target_(target) {}

  /// Adds operators for all nodes that evaluation computes; the value of the last is [batch, outputs] and is called `output`.
  void write(const std::string& input, const std::string& output);

 private:
  struct Writer;  // of one layer: a visitor

  onnx::Node& add(const std::string& type, const std::vector<std::string>& inputs, const std::string& output);
  [[nodiscard]] const OnnxValue& value_of(int node) const;
  [[nodiscard]] OnnxValue as_image(const OnnxValue& value);
  [[nodiscard]] OnnxValue as_vector(const OnnxValue& value);
  /// A constant matrix [rows, columns]; returns its name.
  std::string constant(const std::string& name, const std::vector<std::int64_t>& shape,
                       const std::vector<float>& values);
  std::string constant(const std::string& name, const std::vector<std::int64_t>& values);

  const Graph& graph_;
  onnx::Graph& target_;
  OnnxValue input_;
  std::vector<OnnxValue> values_;  // by node; empty names where evaluation does not go
  int reshaped_ = 0;               // operators that only change a shape, for their names
};

}  // namespace troupe::nn
