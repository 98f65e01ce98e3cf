// Streaming speed of the host kernels: GB/s of the bytes that each kernel must read and write, and the ratio to a copy (memcpy) that
// touches as many bytes, half read and half written. Kernel and copy alternate in one process and medians are compared, so that a noisy
// neighbour slows both. The small size stays in the caches between rounds, the large one does not.
//
//   bench_kernels [VARIANT]     avx512, avx2 or reference; default: the choice of host_kernels()
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/clock.hpp"
#include "core/kernels_host.hpp"

namespace {

using namespace troupe::core;

constexpr std::size_t kVectors = 12;
constexpr std::size_t kSizes[] = {431'080, 60'965'224};  // floats: LeNet-5 (Caffe), AlexNet

struct Line {
  std::string name;
  std::size_t passes;  // vectors read plus vectors written
  std::function<void(const Kernels&, const std::vector<Span>&)> run;
};

std::vector<Line> lines() {
  std::vector<Line> all = {
      {"fill", 1, [](const Kernels& k, const auto& v) { k.fill(v[0], 1); }},
      {"copy", 2, [](const Kernels& k, const auto& v) { k.copy(v[0], v[1]); }},
      {"scale", 2, [](const Kernels& k, const auto& v) { k.scale(v[0], 1); }},
      {"axpy", 3, [](const Kernels& k, const auto& v) { k.axpy(v[0], 1e-6f, v[1]); }},
      {"scale_add", 3, [](const Kernels& k, const auto& v) { k.scale_add(v[0], 0.5f, 0.5f, v[1]); }},
      {"difference", 3, [](const Kernels& k, const auto& v) { k.difference(v[0], v[1], v[2]); }},
      {"elastic_pair", 4, [](const Kernels& k, const auto& v) { k.elastic_pair(v[0], v[1], 0.25f, 0.25f); }},
      {"the same, looked at", 4,
       [](const Kernels& k, const auto& v) {
         if (!k.all_within(v[0], kLargestUsable)) std::abort();  // as a server does for every push
         k.elastic_pair(v[0], v[1], 0.25f, 0.25f);
       }},
      {"elastic_delta", 4, [](const Kernels& k, const auto& v) { k.elastic_delta(v[0], v[1], 0.25f, 0.25f); }},
      {"broadcast_all of 4", 4, [](const Kernels& k, const auto& v) { k.broadcast_all(std::span(v).first(4), 0); }},
  };
  for (const std::size_t n : {2, 3, 4, 8, 12})
    all.push_back({fmt::format("reduce_all of {}", n), 2 * n, [n](const Kernels& k, const auto& v) {
                     k.reduce_all(std::span(v).first(n), 1.0f / static_cast<float>(n));
                   }});
  const auto step = [](OptimizerKind kind) { return OptimizerStep{kind, 1e-6f, 0.9f, 1e-6f}; };
  all.push_back({"optimize sgd", 3,
                 [=](const Kernels& k, const auto& v) { k.optimize(v[0], v[1], {}, step(OptimizerKind::sgd)); }});
  all.push_back({"optimize momentum", 5, [=](const Kernels& k, const auto& v) {
                   k.optimize(v[0], v[1], v[2], step(OptimizerKind::momentum));
                 }});
  all.push_back({"optimize nesterov", 5, [=](const Kernels& k, const auto& v) {
                   k.optimize(v[0], v[1], v[2], step(OptimizerKind::nesterov));
                 }});
  all.push_back({"optimize_delta momentum", 5, [=](const Kernels& k, const auto& v) {
                   k.optimize_delta(v[0], v[1], v[2], step(OptimizerKind::momentum));
                 }});
  // The result must be used, or the compiler removes the call.
  all.push_back({"squared_norm", 1, [](const Kernels& k, const auto& v) {
                   if (k.squared_norm(v[0]) < 0) std::abort();
                 }});
  all.push_back({"all_within", 1, [](const Kernels& k, const auto& v) {
                   if (!k.all_within(v[0], kLargestUsable)) std::abort();
                 }});
  all.push_back({"all_finite", 1, [](const Kernels& k, const auto& v) {
                   if (!k.all_finite(v[0])) std::abort();
                 }});
  return all;
}

double median(std::vector<double>& samples) {
  std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2), samples.end());
  return samples[samples.size() / 2];
}

void measure(const Kernels& kernels, std::size_t size, const std::vector<Span>& vectors) {
  const SteadyClock clock;
  const std::size_t rounds = std::clamp<std::size_t>(400'000'000 / size, 11, 501);
  for (const Line& line : lines()) {
    const std::size_t copied = line.passes * size / 2;  // floats
    const std::size_t half =
        std::max<std::size_t>(2, line.passes / 4);  // vectors: as large a working set as the kernel's
    std::vector<double> of_kernel, of_copy;         // seconds
    for (std::size_t round = 0; round < rounds + 2; ++round) {
      const auto begin = clock.now();
      line.run(kernels, vectors);
      const auto middle = clock.now();
      for (std::size_t done = 0; done < copied; done += size)
        std::memcpy(vectors[done / size % half].data(), vectors[half + done / size % half].data(),
                    std::min(size, copied - done) * sizeof(float));
      const auto end = clock.now();
      if (round < 2) continue;  // caches and pages are warm after two
      of_kernel.push_back(seconds(middle - begin));
      of_copy.push_back(seconds(end - middle));
    }
    const double bytes = static_cast<double>(line.passes * size * sizeof(float));
    const double kernel = median(of_kernel);
    const double copy = median(of_copy);
    fmt::print("{:<24} {:>11} floats {:>8.2f} GB/s {:>6.2f} of a copy ({:.2f} GB/s)\n", line.name, size,
               bytes / kernel / 1e9, copy / kernel, bytes / copy / 1e9);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<HostVariant> variants = host_variants();
  const std::string_view wanted = argc > 1 ? argv[1] : variants.front().name;
  const auto variant =
      std::find_if(variants.begin(), variants.end(), [&](const HostVariant& v) { return v.name == wanted; });
  if (argc > 2 || variant == variants.end()) {
    fmt::print(stderr, "usage: bench_kernels [avx512 | avx2 | reference], as far as this CPU has them\n");
    return 2;
  }
  fmt::print("kernels: {}\n", variant->name);
  HostAllocator allocator;
  for (const std::size_t size : kSizes) {
    std::vector<Buffer> buffers;
    std::vector<Span> vectors;
    for (std::size_t v = 0; v < kVectors; ++v) {
      auto buffer = Buffer::allocate(allocator, align_floats(size));
      if (!buffer) {
        fmt::print(stderr, "{}\n", buffer.error().message);
        return exit_code(buffer.error().code);
      }
      buffers.push_back(std::move(*buffer));
      vectors.push_back(buffers.back().view().first(size));
      variant->kernels->fill(vectors.back(), 1.0f);
    }
    measure(*variant->kernels, size, vectors);
  }
}
