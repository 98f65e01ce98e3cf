// Speed of every kernel. Those over vectors: GB/s of the bytes that the kernel must read and write, and the ratio to a copy (memcpy)
// that touches as many bytes, half read and half written. Kernel and copy alternate in one process and medians are compared, so that a
// noisy neighbour slows both. The small size stays in the caches between rounds, the large one does not. Those of convolutions:
// milliseconds, and Gflop/s of the dense product.
//
//   bench_kernels [VARIANT [NAME]]     VARIANT: avx512, avx2 or reference; default: the choice of host_kernels(); the CPU backend's own
//                                      kernels are always the fastest. NAME: only lines whose name begins with it
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "bench/kernel_lines.hpp"
#include "core/clock.hpp"
#include "core/kernels_host.hpp"

namespace {

using namespace troupe::core;
using troupe::bench::kVectors;

constexpr std::size_t kSizes[] = {431'080, 60'965'224};  // floats: LeNet-5 (Caffe), AlexNet

double median(std::vector<double>& samples) {
  std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2), samples.end());
  return samples[samples.size() / 2];
}

void measure(const troupe::bench::Line& line, const Kernels& kernels, std::size_t size,
             const std::vector<Span>& vectors) {
  const SteadyClock clock;
  const std::size_t rounds = std::clamp<std::size_t>(400'000'000 / size, 11, 501);
  for (const Span vector : vectors) kernels.fill(vector, 1.0f);
  const auto copied = static_cast<std::size_t>(line.passes * static_cast<double>(size) / 2);  // floats
  // Vectors: as large a working set as the kernel's.
  const std::size_t half = std::max<std::size_t>(2, static_cast<std::size_t>(line.passes / 4));
  std::vector<double> of_kernel, of_copy;  // seconds
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
  const double bytes = line.passes * static_cast<double>(size * sizeof(float));
  const double kernel = median(of_kernel);
  const double copy = median(of_copy);
  fmt::print("{:<28} {:>11} floats {:>8.2f} GB/s {:>6.2f} of a copy ({:.2f} GB/s)\n", line.name, size,
             bytes / kernel / 1e9, copy / kernel, bytes / copy / 1e9);
  std::fflush(stdout);
}

void measure(const troupe::bench::ConvolutionLine& line) {
  constexpr int kRounds = 51;
  const SteadyClock clock;
  std::vector<double> samples;  // seconds
  for (int round = 0; round < kRounds + 2; ++round) {
    const auto begin = clock.now();
    line.run();
    if (round >= 2) samples.push_back(seconds(clock.now() - begin));
  }
  const double time = median(samples);
  fmt::print("{:<38} {:>8.3f} ms {:>8.1f} Gflop/s of the dense product\n", line.name, time * 1e3,
             line.flops / time / 1e9);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<HostVariant> variants = host_variants();
  const std::string_view wanted = argc > 1 ? argv[1] : variants.front().name;
  const std::string_view name = argc > 2 ? argv[2] : "";
  const auto variant =
      std::find_if(variants.begin(), variants.end(), [&](const HostVariant& v) { return v.name == wanted; });
  if (argc > 3 || variant == variants.end()) {
    fmt::print(stderr, "usage: bench_kernels [avx512 | avx2 | reference [NAME]], as far as this CPU has them\n");
    return 2;
  }
  fmt::print("kernels: {}\n", variant->name);
  omp_set_num_threads(1);
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
    }
    auto lines = troupe::bench::vector_lines();
    for (auto& line : troupe::bench::step_lines(size)) lines.push_back(std::move(line));
    for (const auto& line : lines)
      if (line.name.starts_with(name)) measure(line, *variant->kernels, size, vectors);
  }
  for (const auto& line : troupe::bench::convolution_lines())
    if (line.name.starts_with(name)) measure(line);
}
