#include "gpu/timing/vector_rates.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "core/buffer.hpp"

namespace troupe::gpu {
namespace {

constexpr std::size_t kVectors = 7;
constexpr double kBytesOfARound = 20e9;  // of one kernel: milliseconds on any device, in which a launch is nothing
constexpr int kMostRepeats = 40;

using Vectors = std::array<core::Buffer, kVectors>;

struct RatedKernel {
  std::string name;
  double passes = 0;  // floats read plus floats written, per float of a vector
  Kernel kernel;
};

std::vector<RatedKernel> rated_kernels(Vectors& v, std::size_t floats) {
  const auto count = static_cast<std::int64_t>(floats);
  const auto at = [&](std::size_t i) { return v[i].data(); };
  std::vector<RatedKernel> all{
      {"elastic_pair", 4, ElasticPair{at(0), at(1), 0.25F, 0.25F, count}},
      {"elastic_delta", 4, ElasticDelta{at(0), at(1), 0.25F, 0.25F, count}},
      {"axpy", 3, Axpy{at(0), at(1), 1e-6F, count}},
      {"scale_add", 3, ScaleAdd{at(0), at(1), 0.5F, 0.5F, count}},
      {"difference", 3, Difference{at(0), at(1), at(2), count}},
      {"reduce_all of 4", 8,
       ReduceAll{.all = {at(0), at(1), at(2), at(3)}, .vectors = 4, .scale = 0.25F, .count = count}},
      {"narrow bf16", 1.5, Narrow{reinterpret_cast<std::uint16_t*>(at(0)), at(1), core::HalfKind::bf16, count}},
      {"widen bf16", 1.5,
       Widen{at(0), reinterpret_cast<const std::uint16_t*>(at(1)), core::HalfKind::bf16, false, count}},
  };
  const auto numbers = core::step_numbers({.lr = 1e-6F, .momentum = 0.9F, .weight_decay = 1e-6F});
  const auto optimizer = [&](const char* name, core::OptimizerKind kind, double passes, bool delta = false) {
    all.push_back({name, passes,
                   Optimize{.kind = kind,
                            .x = at(0),
                            .g = at(1),
                            .first = at(2),
                            .second = at(3),
                            .numbers = numbers,
                            .delta = delta,
                            .count = count}});
  };
  optimizer("sgd", core::OptimizerKind::sgd, 3);
  optimizer("momentum", core::OptimizerKind::momentum, 5);
  optimizer("nesterov", core::OptimizerKind::nesterov, 5);
  optimizer("rmsprop", core::OptimizerKind::rmsprop, 5);
  optimizer("adagrad", core::OptimizerKind::adagrad, 5);
  optimizer("adam", core::OptimizerKind::adam, 7);
  optimizer("adamw", core::OptimizerKind::adamw, 7);
  optimizer("adadelta", core::OptimizerKind::adadelta, 7);
  optimizer("momentum, change only", core::OptimizerKind::momentum, 5, true);
  return all;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// Seconds until `repeats` calls are done.
template <class Call>
core::Result<double> seconds_of(Stream& stream, int repeats, const Call& call) {
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i)
    if (auto called = call(i); !called) return tl::unexpected(std::move(called.error()));
  if (auto waited = stream.synchronize(); !waited) return tl::unexpected(std::move(waited.error()));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace

core::Result<std::vector<VectorRate>> vector_rates(Device& device, std::size_t floats, int rounds) {
  auto stream = device.make_stream();
  if (!stream) return tl::unexpected(std::move(stream.error()));
  Vectors vectors;  // freed after the stream's work: every measurement waits
  for (auto& vector : vectors) {
    auto made = core::Buffer::allocate(device.memory(), floats, "vectors to measure");
    if (!made) return tl::unexpected(std::move(made.error()));
    vector = std::move(*made);
  }
  const std::size_t bytes = floats * sizeof(float);
  const auto copy = [&](int i) {
    const auto pair =
        static_cast<std::size_t>(i % 2) * 2;  // two pairs of vectors: as large a working set as a kernel's
    return (*stream)->copy(vectors[pair + 1].data(), vectors[pair].data(), bytes);
  };
  std::vector<VectorRate> rates{{"copy", 0, 1}};
  std::vector<double> copies;  // bytes per second
  for (const auto& rated : rated_kernels(vectors, floats)) {
    const double of_kernel = rated.passes * static_cast<double>(bytes);
    const int repeats = std::clamp(static_cast<int>(kBytesOfARound / of_kernel), 1, kMostRepeats);
    const auto launch = [&](int) { return (*stream)->launch(rated.kernel); };
    std::vector<double> kernel_rates;
    std::vector<double> ratios;
    for (int round = -1; round < rounds; ++round) {  // the first one warms up
      // No kernel meets what others left there: infinities, or numbers so small that HostDevice is slow.
      for (auto& vector : vectors)
        if (auto filled = (*stream)->launch(Fill{vector.data(), 1, static_cast<std::int64_t>(floats)}); !filled)
          return tl::unexpected(std::move(filled.error()));
      if (auto waited = (*stream)->synchronize(); !waited) return tl::unexpected(std::move(waited.error()));
      const auto kernel_s = seconds_of(**stream, repeats, launch);
      if (!kernel_s) return tl::unexpected(kernel_s.error());
      const auto copy_s = seconds_of(**stream, repeats, copy);
      if (!copy_s) return tl::unexpected(copy_s.error());
      if (round < 0) continue;
      kernel_rates.push_back(repeats * of_kernel / *kernel_s);
      copies.push_back(repeats * 2.0 * static_cast<double>(bytes) / *copy_s);
      ratios.push_back(kernel_rates.back() / copies.back());
    }
    rates.push_back({rated.name, median(kernel_rates) / 1e9, median(ratios)});
  }
  rates.front().gb_per_s = median(copies) / 1e9;
  return rates;
}

}  // namespace troupe::gpu
