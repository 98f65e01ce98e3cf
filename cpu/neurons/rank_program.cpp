#include "cpu/neurons/rank_program.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cpu/neurons/error_rows.hpp"
#include "cpu/program/lowering.hpp"

namespace troupe::cpu {
namespace {

dnnl::memory::desc rows_desc(std::int64_t rows, std::int64_t columns) {
  return {{rows, columns}, dnnl::memory::data_type::f32, dnnl::memory::dims{columns, 1}};
}

/// [rows, columns] of memory that is [columns, rows].
dnnl::memory::desc turned_desc(std::int64_t rows, std::int64_t columns) {
  return {{rows, columns}, dnnl::memory::data_type::f32, dnnl::memory::dims{1, rows}};
}

/// to [columns, rows] ← from [rows, columns]
void transpose(const float* from, float* to, std::size_t rows, std::size_t columns) {
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
}

/// c ← f(c + a · b): c begins with the biases.
dnnl::primitive_attr adding(std::optional<nn::Activation> activation) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops after;
  after.append_sum(1.0f);
  if (activation) after.append_eltwise(1.0f, forward_algorithm(*activation), 0.0f, 0.0f);
  attributes.set_post_ops(after);
  return attributes;
}

}  // namespace

core::Result<std::unique_ptr<RankProgram>> RankProgram::compile(const RankSetup& setup, std::size_t rank,
                                                                std::size_t& node) {
  auto program = std::unique_ptr<RankProgram>(new RankProgram(setup, rank));
  if (auto allocated = program->allocate(setup.gradients != nullptr); !allocated)
    return tl::unexpected(std::move(allocated.error()));
  for (std::size_t layer = 0; layer < setup.layers.size(); ++layer) {
    node = static_cast<std::size_t>(setup.layers[layer].link.node);
    program->compile_layer(setup, layer);
  }
  if (auto allocated = program->allocate_scratch(); !allocated) return tl::unexpected(std::move(allocated.error()));
  return program;
}

RankProgram::RankProgram(const RankSetup& setup, std::size_t rank)
    : layers_(setup.layers),
      rank_(rank),
      batch_(static_cast<std::size_t>(setup.batch)),
      engine_(setup.engine),
      stream_(setup.engine),
      products_(setup.layers.size()) {}

core::Result<void> RankProgram::allocate(bool training) {
  std::vector<std::size_t> floats;
  for (const SplitLayer& layer : layers_) floats.push_back(layer.value_count());
  floats.push_back(layers_.back().value_count());  // outputs
  floats.push_back(layers_.back().value_count());  // and their gradients: scratch if not training
  std::array<std::size_t, 2> longest{};
  for (std::size_t layer = 0; training && layer < layers_.size(); ++layer)
    longest[layer % 2] = std::max(longest[layer % 2], layers_[layer].value_count());
  floats.insert(floats.end(), longest.begin(), longest.end());
  std::size_t all = 0;
  for (const auto count : floats) all += core::align_floats(count);
  auto memory = core::Buffer::allocate(allocator_, all, fmt::format("the values of rank {}", rank_));
  if (!memory) return tl::unexpected(std::move(memory.error()));
  memory_ = std::move(*memory);
  std::size_t offset = 0;
  for (const auto count : floats) {
    values_.push_back(memory_.view().subspan(offset, count));
    offset += core::align_floats(count);
  }
  const auto take = [&] {
    const auto last = values_.back();
    values_.pop_back();
    return last;
  };
  errors_[1] = take();
  errors_[0] = take();
  output_gradients_ = take();
  outputs_ = take();
  return {};
}

void RankProgram::compile_layer(const RankSetup& setup, std::size_t layer) {
  const nn::LinearLink& link = layers_[layer].link;
  const auto neurons = own(layer);
  if (neurons.count == 0) return;
  const auto rows = static_cast<std::int64_t>(neurons.count);
  const auto batch = setup.batch;
  const auto offset_of = [&](int parameter) {
    return setup.layout.tensors()[static_cast<std::size_t>(parameter)].offset;
  };
  const auto first = static_cast<std::int64_t>(neurons.offset);
  const auto weight_offset = offset_of(link.first_parameter) + first * link.inputs;
  const auto bias_offset = offset_of(link.first_parameter + 1) + first;
  float* const weights = setup.parameters + weight_offset;
  float* const inputs = layer == 0 ? nullptr : values_[layer - 1].data();
  const auto use = [&](const char* direction) {
    return fmt::format("{}.{}.{}", setup.graph.nodes()[static_cast<std::size_t>(link.node)].name, direction, rows);
  };

  Products& products = products_[layer];
  const auto x = layer == 0 ? turned_desc(link.inputs, batch) : rows_desc(link.inputs, batch);
  products.bias = setup.parameters + bias_offset;
  products.forward = product(setup, use("forward"), {rows_desc(rows, link.inputs), weights}, {x, inputs},
                             {rows_desc(rows, batch), own_part(values_[layer], layer).data()}, adding(link.activation));
  if (setup.gradients == nullptr) return;
  float* const error = own_part(errors(layer), layer).data();
  const auto xt = layer == 0 ? rows_desc(batch, link.inputs) : turned_desc(batch, link.inputs);
  products.bias_gradient = setup.gradients + bias_offset;
  products.weights = product(setup, use("backward_weights"), {rows_desc(rows, batch), error}, {xt, inputs},
                             {rows_desc(rows, link.inputs), setup.gradients + weight_offset}, attributes());
  if (layer == 0) return;
  products.contributions =
      product(setup, use("backward_data"), {turned_desc(link.inputs, rows), weights}, {rows_desc(rows, batch), error},
              {rows_desc(link.inputs, batch), errors(layer - 1).data()}, attributes());
}

dnnl::memory RankProgram::memory(const dnnl::memory::desc& desc, float* data) {
  memories_.emplace_back(desc, engine_, data == nullptr ? DNNL_MEMORY_NONE : data);
  return memories_.back();
}

Operation RankProgram::product(const RankSetup& setup, const std::string& use, const Matrix& a, const Matrix& b,
                               const Matrix& c, const dnnl::primitive_attr& attributes) {
  const auto chosen =
      setup.choices.choose<dnnl::matmul>(use, "", dnnl::matmul::desc(a.desc, b.desc, c.desc), attributes, setup.engine);
  Operation operation;
  operation.primitive = dnnl::matmul(chosen);
  const auto add = [&](int argument, const dnnl::memory& value) {
    operation.arguments.push_back({argument, value.get()});
  };
  add(DNNL_ARG_SRC, memory(a.desc, a.data));
  add(DNNL_ARG_WEIGHTS, memory(b.desc, b.data));
  if (b.data == nullptr) images_.push_back(memories_.back());
  add(DNNL_ARG_DST, memory(c.desc, c.data));
  if (const auto scratchpad = chosen.scratchpad_desc(); scratchpad.get_size() > 0) {
    scratchpads_.push_back(memory(scratchpad, nullptr));
    add(DNNL_ARG_SCRATCHPAD, scratchpads_.back());
  }
  return operation;
}

core::Result<void> RankProgram::allocate_scratch() {
  std::size_t bytes = 0;
  for (const auto& scratchpad : scratchpads_) bytes = std::max(bytes, scratchpad.get_desc().get_size());
  if (bytes == 0) return {};
  auto scratch = core::Buffer::allocate(allocator_, (bytes + sizeof(float) - 1) / sizeof(float),
                                        fmt::format("the products of rank {}", rank_));
  if (!scratch) return tl::unexpected(std::move(scratch.error()));
  scratch_ = std::move(*scratch);
  for (auto& scratchpad : scratchpads_) scratchpad.set_data_handle(scratch_.data());
  return {};
}

void RankProgram::set_images(const float* images) {
  // oneDNN takes inputs as void*, and only reads them.
  for (const auto& memory : images_) memory.set_data_handle(const_cast<float*>(images));
}

void RankProgram::forward(std::size_t layer) {
  const Products& products = products_[layer];
  if (products.bias == nullptr) return;
  float* row = own_part(values_[layer], layer).data();
  for (std::size_t neuron = 0; neuron < own(layer).count; ++neuron, row += batch_)
    std::fill_n(row, batch_, products.bias[neuron]);
  run(products.forward);
}

void RankProgram::transpose_outputs() {
  const auto& values = values_.back();
  transpose(values.data(), outputs_.data(), values.size() / batch_, batch_);
}

void RankProgram::take_output_gradients() {
  const std::size_t last = layers_.size() - 1;
  const auto neurons = own(last);
  const std::size_t outputs = outputs_.size() / batch_;
  float* error = own_part(errors(last), last).data();
  for (std::size_t neuron = neurons.offset; neuron < neurons.offset + neurons.count; ++neuron)
    for (std::size_t sample = 0; sample < batch_; ++sample) *error++ = output_gradients_[sample * outputs + neuron];
}

void RankProgram::error_backward(std::size_t layer) {
  const Products& products = products_[layer];
  if (products.bias_gradient == nullptr) return;
  error_rows_backward(layers_[layer].link.activation, own_part(values_[layer], layer), own_part(errors(layer), layer),
                      {products.bias_gradient, own(layer).count});
}

void RankProgram::contribute(std::size_t layer) {
  if (products_[layer].bias_gradient != nullptr) run(products_[layer].contributions);
}

void RankProgram::weight_gradient(std::size_t layer) {
  if (products_[layer].bias_gradient != nullptr) run(products_[layer].weights);
}

}  // namespace troupe::cpu
