#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <utility>

#include "bench/kernel_lines.hpp"
#include "cpu/kernels/elementwise.hpp"
#include "cpu/kernels/pooled_gradient.hpp"
#include "cpu/kernels/row_gradient.hpp"
#include "cpu/kernels/winograd.hpp"
#include "cpu/layers/loss.hpp"
#include "cpu/layers/pointwise.hpp"
#include "nn/dropout.hpp"
#include "transport/exchange/on_wire.hpp"
#include "transport/exchange/packing.hpp"
#include "transport/exchange/reduce.hpp"

namespace troupe::bench {
namespace {

using namespace core;
using cpu::ConvolutionShape;
using cpu::KernelCall;

/// A batch's activations: rows of this many values.
constexpr std::int64_t kColumns = 1000;
std::int64_t rows_of(Span vector) { return static_cast<std::int64_t>(vector.size()) / kColumns; }

KernelCall call_on(const std::vector<Span>& vectors) {
  KernelCall call{.rows = rows_of(vectors[0]), .columns = kColumns, .rate = 0.5};
  for (std::size_t k = 0; k < call.data.size(); ++k) call.data[k] = vectors[k].data();
  return call;
}

/// As a blocked convolution of 20 channels in blocks of 16: 20 of every 32 floats are parameters.
exchange::Packing blocked(std::size_t floats) {
  std::vector<float> marks(floats);
  for (std::size_t i = 0; i < floats; ++i) marks[i] = i % 32 < 20 ? 1 : 0;
  return exchange::Packing(marks);
}

/// As many halves as the vector has floats, in its memory; ones are no NaN in any format of 16 bits.
HalfSpan halves_of(Span vector) { return {reinterpret_cast<std::uint16_t*>(vector.data()), vector.size()}; }

void add_exchanges(std::vector<Line>& all, std::size_t floats) {
  all.push_back({"reduce_slice of 4", 2,
                 [](const Kernels& k, const auto& v) { exchange::reduce_slice(k, std::span(v).first(4), 0, 0.25f); }});
  all.push_back({"broadcast_slice of 4", 1,
                 [](const Kernels& k, const auto& v) { exchange::broadcast_slice(k, std::span(v).first(4), 0, 0); }});
  const auto packing = std::make_shared<const exchange::Packing>(blocked(floats));
  const std::size_t packed = packing->packed(0, floats);
  all.push_back({"pack", 1.25, [=](const Kernels&, const auto& v) { packing->pack(v[0], 0, v[1].first(packed)); }});
  all.push_back({"unpack", 1.25, [=](const Kernels&, const auto& v) { packing->unpack(v[1].first(packed), 0, v[0]); }});
  // What the server does with a vector that comes in bf16, and the worker with a change that comes back in bf16.
  const exchange::WireFormat rounded{.half = HalfKind::bf16, .rounding = Rounding::both};
  all.push_back({"decode_request in bf16", 1.5, [=](const Kernels& k, const auto& v) {
                   exchange::decode_request(k, rounded, {.dense = v[0], .halves = halves_of(v[1])});
                 }});
  const exchange::WireFormat change{.half = HalfKind::bf16, .rounding = Rounding::change};
  all.push_back({"decode_answer, a change in bf16", 2.5, [=](const Kernels& k, const auto& v) {
                   exchange::decode_answer(k, change, {.vector = v[0]}, {.dense = v[0], .halves = halves_of(v[1])},
                                           true);
                 }});
}

void add_activations(std::vector<Line>& all) {
  for (const auto f : {nn::Activation::relu, nn::Activation::sigmoid, nn::Activation::tanh})
    all.push_back({"activation_backward " + std::string(nn::to_string(f)), 3, [f](const Kernels&, const auto& v) {
                     cpu::elementwise().activation_backward[static_cast<std::size_t>(f)](
                         v[0].data(), v[1].data(), v[2].data(), rows_of(v[0]), kColumns);
                   }});
  all.push_back({"activation_and_bias_backward", 3,
                 [](const Kernels&, const auto& v) { cpu::activation_and_bias_backward(call_on(v), {}); }});
  all.push_back({"column_sums", 1, [](const Kernels&, const auto& v) {
                   cpu::elementwise().column_sums(v[0].data(), v[1].data(), rows_of(v[0]), kColumns);
                 }});
  all.push_back({"bias_backward", 1, [](const Kernels&, const auto& v) { cpu::bias_backward(call_on(v), {}); }});
  all.push_back({"multiply", 3, [](const Kernels&, const auto& v) {
                   cpu::elementwise().multiply(v[0].data(), v[1].data(), v[2].data(), v[0].size());
                 }});
  all.push_back({"exp_rows", 2, [](const Kernels&, const auto& v) {
                   cpu::elementwise().exp_rows(v[0].data(), v[1].data(), v[2].data(), v[3].data(), rows_of(v[0]),
                                               kColumns);
                 }});
}

/// As many images of 14 x 14 as the vector has room for, averaged to 7 x 7, or the gradient back.
KernelCall pooling_of(Span images, Span means, bool backward) {
  KernelCall call;
  call.data = {images.data(), means.data()};
  if (backward) std::swap(call.data[0], call.data[1]);
  call.convolution = {.batch = static_cast<std::int64_t>(images.size()) / (14 * 14),
                      .channels = 1,
                      .height = 14,
                      .width = 14,
                      .outputs = 1,
                      .out_height = 7,
                      .out_width = 7};
  return call;
}

}  // namespace

std::vector<Line> step_lines(std::size_t floats) {
  std::vector<Line> all;
  add_exchanges(all, floats);
  add_activations(all);
  all.push_back({"compute_loss", 2, [](const Kernels&, const auto& v) {
                   const std::vector<std::int32_t> labels(static_cast<std::size_t>(rows_of(v[0])));
                   if (!cpu::compute_loss(nn::Loss::softmax_cross_entropy, v[0].data(), labels, rows_of(v[0]), kColumns,
                                          v[1].data()))
                     std::abort();
                 }});
  all.push_back({"dropout_mask", 1, [](const Kernels&, const auto& v) { nn::dropout_mask(1, 2, 3, 0.5, v[0]); }});
  all.push_back({"dropout_forward", 4, [](const Kernels&, const auto& v) { cpu::dropout_forward(call_on(v), {}); }});
  all.push_back({"dropout_backward", 3, [](const Kernels&, const auto& v) { cpu::dropout_backward(call_on(v), {}); }});
  all.push_back({"update_running_statistics", 6, [](const Kernels&, const auto& v) {
                   KernelCall call = call_on(v);
                   call.rows = 64;
                   call.columns = static_cast<std::int64_t>(v[0].size());
                   cpu::update_running_statistics(call, {});
                 }});
  all.push_back({"adaptive_pool_forward", 1.25,
                 [](const Kernels&, const auto& v) { cpu::adaptive_pool_forward(pooling_of(v[0], v[1], false), {}); }});
  all.push_back({"adaptive_pool_backward", 1.25,
                 [](const Kernels&, const auto& v) { cpu::adaptive_pool_backward(pooling_of(v[0], v[1], true), {}); }});
  return all;
}

namespace {

/// A call of a kernel over buffers of its own. No pooling winner is alike in two neighbours.
struct Call {
  Call(ConvolutionShape shape, KernelCall::Run run) {
    call.run = run;
    call.convolution = shape;
  }
  void give(std::size_t k, std::size_t floats, float value) {
    buffers[k] = Buffer::allocate(allocator, align_floats(floats)).value();  // the kernels want aligned memory
    call.data[k] = buffers[k].view().data();
    std::fill_n(call.data[k], floats, value);
  }
  void give_winners(std::size_t k, std::size_t bytes) {
    give(k, (bytes + 3) / 4, 0);
    auto* winners = reinterpret_cast<std::uint8_t*>(call.data[k]);
    for (std::size_t i = 0; i < bytes; ++i) winners[i] = static_cast<std::uint8_t>(i % 4);
  }
  HostAllocator allocator;
  KernelCall call;
  std::array<Buffer, 7> buffers;
};

ConvolutionLine line_of(const char* name, const std::shared_ptr<Call>& call) {
  const ConvolutionShape& s = call->call.convolution;
  return {
      name,
      2.0 * static_cast<double>(s.batch * s.out_height * s.out_width * s.outputs * s.channels * s.kernel * s.kernel),
      [call] { call->call.run(call->call, {}); }};
}

ConvolutionShape square(std::int64_t channels, std::int64_t outputs, std::int64_t side, std::int64_t kernel) {
  const std::int64_t out = side - kernel + 1;
  return {64, channels, side, side, outputs, out, out, kernel, 1, 0};
}

}  // namespace

std::vector<ConvolutionLine> convolution_lines() {
  if (!cpu::row_gradient_available()) return {};
  const auto floats = [](std::int64_t count) { return static_cast<std::size_t>(count); };
  std::vector<ConvolutionLine> all;
  const ConvolutionShape rows = square(20, 50, 12, 5);
  const auto row = std::make_shared<Call>(rows, cpu::row_gradient);
  row->give(0, floats(rows.batch * rows.out_height * rows.out_width * rows.outputs), 1);
  row->give(1, cpu::row_gradient_weights(rows).get_size() / sizeof(float), 1);
  row->give(2, floats(rows.batch * rows.height * rows.width * rows.channels), 0);
  all.push_back(line_of("row_gradient 20 to 50, 5x5", row));

  const ConvolutionShape pooled = square(64, 128, 12, 5);
  const std::size_t inputs = floats(pooled.batch * pooled.channels * pooled.height * pooled.width);
  const std::size_t outputs = floats(pooled.batch * pooled.outputs * pooled.out_height * pooled.out_width / 4);
  const std::size_t weights = cpu::pooled_gradient_weights(pooled).get_size() / sizeof(float);
  const auto weight = std::make_shared<Call>(pooled, cpu::pooled_weight_gradient);
  weight->give(0, inputs, 1);
  weight->give(1, outputs, 1);
  weight->give_winners(3, outputs);
  weight->give(4, weights, 0);
  weight->give(5, 128, 0);
  weight->give(6, cpu::pooled_weight_gradient_scratch(pooled), 0);
  all.push_back(line_of("pooled_weight_gradient 64 to 128, 5x5", weight));

  const auto data = std::make_shared<Call>(pooled, cpu::pooled_data_gradient);
  data->give(0, outputs, 1);
  data->give_winners(2, outputs);
  data->give(3, weights, 1);
  data->give(4, inputs, 0);
  data->give(5, cpu::pooled_data_gradient_scratch(pooled, 1), 0);
  all.push_back(line_of("pooled_data_gradient 64 to 128, 5x5", data));

  if (!cpu::winograd_tiles_available()) return all;
  // A layer of ResNets, in bfloat16. GFLOP/s of the plain arithmetic: 2.25 times the multiplications that the kernel makes.
  const ConvolutionShape tiles{16, 128, 28, 28, 128, 28, 28, 3, 1, 1};
  const std::size_t activations = floats(tiles.batch * tiles.channels * tiles.height * tiles.width) / 2;
  const std::size_t packed = cpu::winograd_packed_floats(tiles);
  const std::size_t parameters = cpu::winograd_weights(tiles).get_size() / sizeof(float);
  const auto convolution = std::make_shared<Call>(tiles, cpu::winograd_convolution);
  convolution->give(0, activations, 1);
  convolution->give(1, packed, 1);
  convolution->give(3, activations, 0);
  convolution->give(4, cpu::winograd_scratch(tiles, 1), 0);
  all.push_back(line_of("winograd_convolution 128 to 128, 3x3, bf16", convolution));
  const auto gradient = std::make_shared<Call>(tiles, cpu::winograd_weight_gradient);
  gradient->give(0, activations, 1);
  gradient->give(1, activations, 1);
  gradient->give(2, parameters, 0);
  gradient->give(4, cpu::winograd_gradient_scratch(tiles), 0);
  all.push_back(line_of("winograd_weight_gradient 128 to 128, 3x3, bf16", gradient));
  const auto pack = std::make_shared<Call>(tiles, cpu::winograd_pack);
  pack->give(0, parameters, 1);
  pack->give(1, packed, 0);
  all.push_back({"winograd_pack 128 to 128, 3x3, bf16 (per weight)", static_cast<double>(parameters),
                 [pack] { pack->call.run(pack->call, {}); }});
  const auto rotated = std::make_shared<Call>(tiles, cpu::winograd_pack_rotated);
  rotated->give(0, parameters, 1);
  rotated->give(1, packed, 0);
  all.push_back({"winograd_pack_rotated 128 to 128, 3x3, bf16 (per weight)", static_cast<double>(parameters),
                 [rotated] { rotated->call.run(rotated->call, {}); }});
  return all;
}

}  // namespace troupe::bench
