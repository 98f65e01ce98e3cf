#include "cpu/ceilings.hpp"

#include <omp.h>

#include <algorithm>
#include <chrono>

#include <dnnl.hpp>

#include "core/buffer.hpp"

namespace troupe::cpu {
namespace {

using dnnl::memory;

constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kChannels = 256;
constexpr std::int64_t kSide = 28;
constexpr std::int64_t kKernel = 3;
constexpr double kFlops = 2.0 * kBatch * kChannels * kChannels * kKernel * kKernel * kSide * kSide;
constexpr std::size_t kVector = std::size_t{16} << 20;  // floats
constexpr int kRounds = 5;

template <class Work>
double fastest_s(const Work& work) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  for (int round = 0; round <= kRounds; ++round) {
    const auto began = Clock::now();
    work();
    const double took = std::chrono::duration<double>(Clock::now() - began).count();
    if (round > 0) best = round == 1 ? took : std::min(best, took);  // the first is cold
  }
  return best;
}

std::size_t floats_of(const memory::desc& desc) { return (desc.get_size() + sizeof(float) - 1) / sizeof(float); }

}  // namespace

core::Result<Ceilings> measure_ceilings(nn::Precision precision, int threads) {
  omp_set_num_threads(threads);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto type = precision == nn::Precision::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
  const memory::desc image({kBatch, kChannels, kSide, kSide}, type, memory::format_tag::any);
  const memory::desc weight({kChannels, kChannels, kKernel, kKernel}, type, memory::format_tag::any);
  const dnnl::convolution_forward::primitive_desc desc({dnnl::prop_kind::forward_training,
                                                        dnnl::algorithm::convolution_direct,
                                                        image,
                                                        weight,
                                                        image,
                                                        {1, 1},
                                                        {1, 1},
                                                        {1, 1}},
                                                       engine);

  core::HostAllocator allocator;
  auto from = core::Buffer::allocate(allocator, std::max(kVector, floats_of(desc.src_desc())), "a vector to measure");
  if (!from) return tl::unexpected(std::move(from.error()));
  auto to = core::Buffer::allocate(allocator, std::max(kVector, floats_of(desc.dst_desc())), "a vector to measure");
  if (!to) return tl::unexpected(std::move(to.error()));
  auto weights = core::Buffer::allocate(allocator, floats_of(desc.weights_desc()), "weights to measure");
  if (!weights) return tl::unexpected(std::move(weights.error()));
  for (auto* buffer : {&*from, &*to, &*weights}) std::ranges::fill(buffer->view(), 0.01F);

  Ceilings result;
  const dnnl::convolution_forward convolution(desc);
  const std::unordered_map<int, memory> arguments{
      {DNNL_ARG_SRC, memory(desc.src_desc(), engine, from->data())},
      {DNNL_ARG_WEIGHTS, memory(desc.weights_desc(), engine, weights->data())},
      {DNNL_ARG_DST, memory(desc.dst_desc(), engine, to->data())}};
  result.gflops = kFlops / fastest_s([&] { convolution.execute(stream, arguments); }) / 1e9;
  const float* x = from->data();
  float* y = to->data();
  const double seconds = fastest_s([&] {
#pragma omp parallel for simd schedule(static)
    for (std::size_t i = 0; i < kVector; ++i) y[i] += x[i];
  });
  result.gb_per_s = 3.0 * kVector * sizeof(float) / seconds / 1e9;
  return result;
}

}  // namespace troupe::cpu
