/// What one rank of a neuron-parallel replica computes: its rows of every linear layer. It communicates nothing.
///
/// Values are kept by neuron: the outputs of a layer are [outputs, batch], so that each rank's part is one piece and the weights' rows, as
/// they are in the arena, multiply it from the left. With W [own, inputs] the own rows and x [inputs, batch] the inputs:
///   forward        y [own, batch] = f(W · x + b)
///   error          dz = dy · f'(z);  db = Σ dz over the batch
///   contributions  dx [inputs, batch] = Wᵀ · dz, to be summed over the ranks
///   weights        dW [own, inputs] = dz · xᵀ
/// The first layer reads the batch's images [batch, inputs] as they are. Products are oneDNN's, with the implementations that the plan names
/// ("fc1.forward.50": of a layer for 50 rows).
///
/// Thread rule: compiled by the owner of the replica; then only its rank's thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <dnnl.hpp>

#include "core/buffer.hpp"
#include "cpu/neurons/split.hpp"
#include "cpu/program/choices.hpp"
#include "cpu/program/program.hpp"
#include "nn/backend.hpp"

namespace troupe::cpu {

/// What all ranks share.
struct RankSetup {
  const nn::Graph& graph;
  const std::vector<SplitLayer>& layers;  // outlives the programs
  const nn::Layout& layout;               // plain
  float* parameters = nullptr;            // the arenas
  float* gradients = nullptr;             // null: not training
  std::int64_t batch = 0;
  dnnl::engine engine;
  Choices& choices;
};

class RankProgram {
 public:
  /// `node` becomes the graph's node that is compiled at present, for messages. Throws NoSuchImplementation, dnnl::error.
  /// Errc::out_of_memory.
  [[nodiscard]] static core::Result<std::unique_ptr<RankProgram>> compile(const RankSetup& setup, std::size_t rank,
                                                                          std::size_t& node);

  /// The images [batch, inputs] of the next forward and backward.
  void set_images(const float* images);
  /// The own part of values(layer); those of the layer before are complete.
  void forward(std::size_t layer);
  /// The outputs of layer `layer` [outputs, batch], of all ranks.
  [[nodiscard]] core::Span values(std::size_t layer) noexcept { return values_[layer]; }

  /// The last layer's outputs as [batch, outputs], from its values; and memory of that size for the gradient of the loss.
  void transpose_outputs();
  [[nodiscard]] core::Span outputs() noexcept { return outputs_; }
  [[nodiscard]] core::Span output_gradients() noexcept { return output_gradients_; }
  /// The own part of output_gradients() becomes the last layer's error.
  void take_output_gradients();

  /// The own error of a layer: through the activation, and the bias's gradient.
  void error_backward(std::size_t layer);
  /// This rank's contributions to the error of the layer before, errors(layer - 1). `layer` > 0. Nothing for a rank without neurons.
  void contribute(std::size_t layer);
  void weight_gradient(std::size_t layer);
  /// [outputs, batch]: of other ranks' neurons only contributions.
  [[nodiscard]] core::Span errors(std::size_t layer) noexcept {
    return errors_[layer % 2].first(values_[layer].size());
  }

  [[nodiscard]] std::size_t workspace_bytes() const noexcept {
    return (memory_.size() + scratch_.size()) * sizeof(float);
  }

 private:
  struct Matrix {
    dnnl::memory::desc desc;
    float* data = nullptr;  // null: the images
  };
  struct Products {  // of one layer; not set for a rank without neurons
    Operation forward;
    Operation contributions;
    Operation weights;
    const float* bias = nullptr;
    float* bias_gradient = nullptr;
  };

  explicit RankProgram(const RankSetup& setup, std::size_t rank);
  [[nodiscard]] core::Result<void> allocate(bool training);
  void compile_layer(const RankSetup& setup, std::size_t layer);
  [[nodiscard]] core::Result<void> allocate_scratch();
  [[nodiscard]] Operation product(const RankSetup& setup, const std::string& use, const Matrix& a, const Matrix& b,
                                  const Matrix& c, const dnnl::primitive_attr& attributes);
  [[nodiscard]] dnnl::memory memory(const dnnl::memory::desc& desc, float* data);
  [[nodiscard]] core::Slice own(std::size_t layer) const { return layers_[layer].neurons[rank_]; }
  [[nodiscard]] core::Span own_part(core::Span vector, std::size_t layer) const {
    const auto part = layers_[layer].values[rank_];
    return vector.subspan(part.offset, part.count);
  }
  void run(const Operation& operation) const { operation.run(stream_, {}); }

  const std::vector<SplitLayer>& layers_;
  const std::size_t rank_;
  const std::size_t batch_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  core::HostAllocator allocator_;
  core::Buffer memory_;   // all values
  core::Buffer scratch_;  // of products, one at a time
  std::vector<core::Span> values_;
  core::Span outputs_;
  core::Span output_gradients_;
  std::array<core::Span, 2> errors_;  // of layers of even and odd number
  std::vector<Products> products_;
  std::vector<dnnl::memory> memories_;  // all that arguments refer to
  std::vector<dnnl::memory> images_;
  std::vector<dnnl::memory> scratchpads_;
};

}  // namespace troupe::cpu
