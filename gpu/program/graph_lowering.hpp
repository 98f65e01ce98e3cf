/// Lowers a graph: forward in its order, the losses, then backward in the reverse order. Compile time only. Thread rule: one thread.
#pragma once

#include <map>
#include <vector>

#include "gpu/program/lowering.hpp"

namespace troupe::gpu {

/// The operands through which a program meets its replica.
struct StepOperands {
  Operand images;   // plain float32, or NHWC of the step's type with padded channels
  Operand input;    // StepInput and labels
  Operand outputs;  // [batch, outputs] of the last layer, float32
  Operand sums;     // LossSums of each head
};

class GraphLowering {
 public:
  explicit GraphLowering(Lowering& lowering);

  /// Throws LoweringFailed.
  [[nodiscard]] StepOperands run();

  /// The node that is lowered at present, for messages.
  [[nodiscard]] int node() const noexcept { return node_; }

 private:
  struct Value {
    Operand output;
    std::vector<Operand> gradients;     // one from each reader and loss
    std::optional<Type> gradient_type;  // of a loss's gradient
    ChannelSums sums;
  };
  /// Nodes that are lowered together.
  struct Part {
    int node = 0;             // the first, whose parameters it has
    std::vector<int> inputs;  // of all its nodes, without those between them
    int last = 0;             // the node whose value leaves the part
    Backward backward{};
  };

  [[nodiscard]] Operand make_images();
  [[nodiscard]] Operand value_of(int node) const;
  [[nodiscard]] Value& value(int node) { return values_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] LayerContext context_of(int node, int last) const;
  void at(int node);
  void lower_node(int node);
  void lower_normalised_sum(int sum, int norm);
  [[nodiscard]] Lowered lower_layer(const LayerContext& context, const nn::Layer& layer);
  void finish(Part part, Lowered lowered);
  void add_head(const nn::Head& head, std::size_t index);
  void give(int node, const Operand& gradient);
  [[nodiscard]] Operand take_gradient(Value& value);
  void add_backward(const Part& part);

  Lowering& lowering_;
  const nn::Graph& graph_;
  StepOperands operands_;
  std::vector<Value> values_;
  std::vector<Part> parts_;
  std::map<int, int> norm_of_sum_;  // node of a sum → the batch norm that is computed with it
  std::map<int, int> sum_of_norm_;
  std::map<int, int> pending_;  // by slot: the gradients that no backward has taken yet
  std::vector<std::function<Operand()>> loss_gradients_;
  int node_ = 0;
};

}  // namespace troupe::gpu
