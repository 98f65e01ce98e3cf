// Images per second of one or more threads that build training batches from a folder of photos: bench/jpeg_pipeline.sh.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "data/config.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Batches until `seconds` have passed; images per second of all threads. Negative: an error was printed.
double rate(const troupe::data::BatchBuilder& builder, std::size_t threads, double seconds) {
  constexpr std::int64_t kBatch = 32;
  std::atomic<std::int64_t> images{0}, next{0};
  std::atomic<bool> failed{false};
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> workers;
    for (std::size_t t = 0; t < threads; ++t)
      workers.emplace_back([&] {
        std::vector<float> pixels(static_cast<std::size_t>(kBatch * builder.image_shape().size()));
        std::vector<std::int32_t> labels(kBatch);
        while (!failed && seconds_since(begin) < seconds) {
          const auto k = next++;
          const std::int64_t first = k * kBatch % builder.size();
          const auto epoch = static_cast<std::uint32_t>(k * kBatch / builder.size());
          if (const auto built = builder.build({0, epoch, first, kBatch, 0}, pixels, labels); !built) {
            fmt::print(stderr, "{}\n", built.error().message);
            failed = true;
          }
          images += kBatch;
        }
      });
  }
  return failed ? -1 : static_cast<double>(images) / seconds_since(begin);
}

}  // namespace

int main(int argc, char** argv) {
  troupe::data::DataConfig config;
  config.name = "folder";
  config.crop = 224;
  config.random_resized_crop = true;
  config.mirror = true;
  config.normalise = true;
  double seconds = 3;
  std::size_t threads = 1;
  CLI::App app("images/s of decoding, random resized crop, mirror and normalisation");
  app.add_option("folder", config.path, "has the folders train and val, with a folder per class")->required();
  app.add_option("--seconds", seconds, "length of the measurement");
  app.add_option("--threads", threads, "decoding threads")->check(CLI::Range(1, 256));
  app.add_option("--crop", config.crop, "side of the images, pixels");
  CLI11_PARSE(app, argc, argv);
  const auto source = troupe::data::open_source(config, 1);
  if (!source) {
    fmt::print(stderr, "{}\n", source.error().message);
    return 1;
  }
  const double images = rate(*source->train, threads, seconds);
  fmt::print("{:.1f}\n", images);
  return images < 0 ? 1 : 0;
}
