/// A model as data: a graph of layers with shapes and canonical parameter names. It computes nothing; a Backend compiles it. Thread
/// rule: plain values, built once and read-only afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.hpp"

namespace troupe::nn {

/// Shape of one sample: channels, height, width; vectors are {n, 1, 1}. The batch is a property of a compiled Replica.
struct Shape {
  std::int64_t channels = 0;
  std::int64_t height = 1;
  std::int64_t width = 1;
  [[nodiscard]] std::int64_t size() const noexcept { return channels * height * width; }
  bool operator==(const Shape&) const = default;
};
[[nodiscard]] std::string to_string(const Shape& shape);  // "20x12x12"; a vector is "500"

enum class Activation : std::uint8_t { relu, sigmoid, tanh };
[[nodiscard]] constexpr std::string_view to_string(Activation activation) noexcept {  // "relu"; here: modules use it
  return activation == Activation::relu ? "relu" : activation == Activation::sigmoid ? "sigmoid" : "tanh";
}
enum class PoolKind : std::uint8_t { max, average };
enum class InitialiserKind : std::uint8_t { constant, normal, uniform, xavier, he };

/// Initial values. constant: `scale`; normal: deviation `scale`; uniform: in [-scale, scale]; xavier: uniform ±sqrt(6 / (in + out))
/// (Glorot & Bengio 2010); he: normal, deviation sqrt(2 / in) (He et al. 2015). `in`, `out` are fans of the weight.
struct Initialiser {
  InitialiserKind kind = InitialiserKind::xavier;
  double scale = 0.01;
  bool operator==(const Initialiser&) const = default;
};

struct LinearLayer {  // input flattened; weight [outputs, inputs], bias [outputs]
  std::int64_t outputs = 0;
  Initialiser weight;
};
/// Input and output channels are cut into `groups` equal parts; part g of the outputs uses only part g of the inputs (Krizhevsky et
/// al. 2012). bias = false is for a convolution in front of a BatchNormLayer, which would subtract the bias again.
struct Conv2dLayer {  // weight [outputs, in_channels / groups, kernel, kernel], bias [outputs]
  std::int64_t outputs = 0;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  Initialiser weight;
  std::int64_t groups = 1;
  bool bias = true;
};
/// Square windows; average does not count padding. The rest that fills no window is left out, or with `ceil` makes a window that
/// hangs over the end (PyTorch's ceil_mode).
struct PoolLayer {
  PoolKind kind = PoolKind::max;
  std::int64_t kernel = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;
  bool ceil = false;
};
/// Averages over size x size windows that cover the input: window i of n reads rows ⌊i · height / n⌋ to ⌈(i + 1) · height / n⌉ − 1, and
/// columns alike (PyTorch's AdaptiveAvgPool2d). size = 1 is the mean over all pixels.
struct AdaptiveAveragePoolLayer {
  std::int64_t size = 1;
};
struct AddLayer {};     // the sum of inputs of one shape
struct ConcatLayer {};  // the channels of the first input, then those of the second, …; height and width are the same
struct ActivationLayer {
  Activation kind = Activation::relu;
};
struct DropoutLayer {  // training: x / (1 - rate) kept with probability 1 - rate; evaluation: identity
  double rate = 0.5;
};
struct FlattenLayer {};

/// Local response normalisation across channels (Krizhevsky et al. 2012, section 3.3), each pixel on its own:
///   y_c = x_c / (k + alpha / size · Σ x_j²)^beta      over the channels j with |j − c| ≤ (size − 1) / 2 that exist
/// alpha is divided by `size`, as PyTorch, Caffe and oneDNN do. The paper does not divide: its size 5, alpha 1e-4, k 2 is
/// alpha = 5e-4 here. `size` is odd.
struct LrnLayer {
  std::int64_t size = 5;
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1;
};

/// Batch normalisation (Ioffe & Szegedy 2015) of each channel over batch, height and width, m values:
///   y = weight · (x − μ) / sqrt(σ² + epsilon) + bias      weight, bias [channels], bias starting at 0
/// Training: μ, σ² = Σ (x − μ)² / m are the batch's, and the running ones move:
///   running_mean += momentum · (μ − running_mean)    running_var += momentum · (σ² · m / (m − 1) − running_var)
/// (as in PyTorch). Evaluation: μ, σ² are the running ones. Training needs m ≥ 2. weight starts at initial_weight: with 0 in the last one
/// of a residual block the block starts as the identity (Goyal et al. 2017).
struct BatchNormLayer {
  double epsilon = 1e-5;
  double momentum = 0.1;
  double initial_weight = 1;
};

using Layer = std::variant<LinearLayer, Conv2dLayer, PoolLayer, ActivationLayer, DropoutLayer, FlattenLayer, LrnLayer,
                           BatchNormLayer, AdaptiveAveragePoolLayer, AddLayer, ConcatLayer>;

/// Mean over the batch. softmax_cross_entropy: -log softmax(z)[label]. squared_error: ½ Σ_k (z_k − onehot_k)² on the last layer's
/// outputs without further activation (sigmoid outputs in the Blue Gene model).
enum class Loss : std::uint8_t { softmax_cross_entropy, squared_error };

/// A layer of a model that is to be built.
struct NodeSpec {
  Layer layer;
  std::string name{};  // canonical: parameters are NAME.weight, NAME.bias; empty: the kind with a number, "conv1"
  std::vector<std::string> inputs{};  // names of earlier nodes, "input" is the model's; empty: the node before
};

/// A second loss, on the outputs of an earlier node: training minimises main loss + Σ weight · auxiliary loss (Szegedy et al. 2014).
/// Evaluation does not compute it.
struct AuxiliaryLoss {
  std::string node;
  double weight = 0.3;
};
struct Head {  // the same with the node's index
  int node = 0;
  double weight = 1;
};

/// One node. `inputs` are indices of earlier nodes; -1 is the model's input. add and concat have two or more, other layers one.
struct Node {
  std::string name;  // canonical: "conv1", "fc2"; parameters are "conv1.weight", "conv1.bias"
  Layer layer;
  std::vector<int> inputs;
  Shape output;  // inferred
};

/// One parameter tensor in canonical form (PyTorch's).
struct Parameter {
  std::string name;                 // "conv1.weight"
  std::vector<std::int64_t> shape;  // [out, in / groups, kh, kw] | [out, in] | [out]; empty: a program's scalar
  Initialiser initialiser;
  std::int64_t fan_in = 0;
  std::int64_t fan_out = 0;
  int node = 0;
  [[nodiscard]] std::int64_t size() const noexcept;
};

/// One tensor of running values. Training updates it beside the parameters, without gradients; evaluation reads it.
struct Statistic {
  std::string name;  // "bn1.running_mean", "bn1.running_var": PyTorch's
  std::int64_t channels = 0;
  float initial = 0;  // of every channel: 0 for means, 1 for variances
  int node = 0;
  std::optional<std::vector<std::int64_t>> given{};  // a program's: its shape, of `channels` elements
  [[nodiscard]] std::vector<std::int64_t> shape() const { return given.value_or(std::vector{channels}); }
};

/// What errors call a model and its layers; by default its name, and names of layers as in a checkpoint ("conv1").
struct GraphPlaces {
  std::string model{};                // "a.toml:3: model.layers"
  std::vector<std::string> layers{};  // "a.toml:4: model.layers[0] (conv2d)"; none, or one for each layer
};

struct InferredLayer;  // nn/shape_inference.hpp

/// A tensor of a model whose layers are not known.
struct GivenTensor {
  std::string name;                 // "fc1.weight"
  std::vector<std::int64_t> shape;  // empty: a scalar
  bool operator==(const GivenTensor&) const = default;
};

/// A checked model: shapes fit, names are unique, the last node's output is the loss's input.
class Graph {
 public:
  /// Infers shapes. Errc::config names the layer, its inputs with their shapes, and the mismatch.
  [[nodiscard]] static core::Result<Graph> build(std::string name, Shape input, const std::vector<NodeSpec>& nodes,
                                                 Loss loss, const std::vector<AuxiliaryLoss>& auxiliary = {},
                                                 const GraphPlaces& places = {});
  /// A chain: each layer takes the output of the one before.
  [[nodiscard]] static core::Result<Graph> sequential(std::string name, Shape input, const std::vector<Layer>& layers,
                                                      Loss loss, const GraphPlaces& places = {});

  /// A model that a program of the user's computes (guest/): its tensors are known, and not its layers. Parameters begin at 0 here, for
  /// the program has its own initial values. Errc::config: no parameters, an empty or repeated name, a tensor without elements.
  [[nodiscard]] static core::Result<Graph> of_program(std::string name, const std::vector<GivenTensor>& parameters,
                                                      const std::vector<GivenTensor>& statistics);

  /// Made by of_program(): only a backend for programs compiles it.
  [[nodiscard]] bool is_program() const noexcept { return program_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const Shape& input() const noexcept { return input_; }
  [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }  // topological order
  [[nodiscard]] Loss loss() const noexcept { return loss_; }
  /// What the loss is computed on: the last node with weight 1, after the auxiliary ones in the order of their nodes.
  [[nodiscard]] const std::vector<Head>& heads() const noexcept { return heads_; }
  /// The shapes of a node's inputs.
  [[nodiscard]] std::vector<Shape> inputs_of(const Node& node) const;
  /// The nodes that read node `index`, in order, once for each input.
  [[nodiscard]] const std::vector<int>& readers(int index) const { return readers_[static_cast<std::size_t>(index)]; }
  /// Whether a gradient flows back into node `index`: it or a node that it depends on has parameters. The model's input, -1: never.
  [[nodiscard]] bool needs_gradient(int index) const {
    return index >= 0 && needs_gradient_[static_cast<std::size_t>(index)];
  }
  /// Whether evaluation computes node `index`: the last node depends on it.
  [[nodiscard]] bool is_evaluated(int index) const { return evaluated_[static_cast<std::size_t>(index)]; }
  [[nodiscard]] const Shape& output() const noexcept { return nodes_.back().output; }
  [[nodiscard]] const std::vector<Parameter>& parameters() const noexcept { return parameters_; }  // canonical order
  [[nodiscard]] std::int64_t parameter_count() const noexcept;
  /// Canonical order: by node, means before variances. Their layout: nn::statistics_layout.
  [[nodiscard]] const std::vector<Statistic>& statistics() const noexcept { return statistics_; }
  /// Multiply-adds × 2 of forward and backward for one sample (no data gradient where none is needed), for GFLOP/s. Counts only
  /// products of matrices, not operations that touch each value a few times (activations, pooling, normalisation).
  [[nodiscard]] double training_flops() const noexcept;
  /// The part of one node: 0 for layers without such a product. All nodes together make training_flops().
  [[nodiscard]] double training_flops(int node) const noexcept;

 private:
  /// Adds a node whose inputs and output are known.
  void add(Node node, const InferredLayer& inferred);
  [[nodiscard]] core::Result<void> set_heads(const std::vector<AuxiliaryLoss>& auxiliary,
                                             const std::vector<std::string>& names);
  [[nodiscard]] int first_unused() const;  // by a layer or a loss; -1: none

  std::string name_;
  bool program_ = false;
  Shape input_;
  std::vector<Node> nodes_;
  std::vector<Head> heads_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> needs_gradient_;
  std::vector<bool> evaluated_;
  Loss loss_ = Loss::softmax_cross_entropy;
  std::vector<Parameter> parameters_;
  std::vector<Statistic> statistics_;
};

}  // namespace troupe::nn
