#include "gpu/program/trials.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "gpu/program/sampled_convolution.hpp"
#include "gpu/program/scratch.hpp"

namespace troupe::gpu {
namespace {

/// NaN in every type.
constexpr int kNanBytes = 0xFF;

bool is_nan(const void* value, Type type) {
  if (type == Type::fp32) {
    float number = 0;
    std::memcpy(&number, value, sizeof(number));
    return std::isnan(number);
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, value, sizeof(bits));
  const std::uint16_t infinity = type == Type::bf16 ? 0x7F80 : 0x7C00;
  return (bits & 0x7FFF) > infinity;
}

/// Numbers of a trial before they repeat: a prime, so that no two channels have the same.
constexpr std::size_t kPattern = 131'071;
/// Of sums over positive numbers, whose rounding errors may all have one sign: in units of the type's last place.
constexpr double kSumTolerance = 4;

double unit_roundoff(Type type) { return type == Type::bf16 ? 0x1p-8 : type == Type::fp16 ? 0x1p-11 : 0x1p-24; }

/// What a trial fetches: [4, channels].
struct FetchedStatistics {
  const float* sum;
  const float* squares;
  const float* mean;      // of y, by a kernel of our own
  const float* variance;  // of y
  /// False if any is NaN.
  [[nodiscard]] bool agree(const TensorShape& output, Type type) const {
    const auto pixels = static_cast<double>(output.pixels());
    const double tolerance = kSumTolerance * unit_roundoff(type);
    const auto near = [&](double found, double wanted) { return std::abs(found - wanted) <= tolerance * wanted; };
    for (std::int64_t c = 0; c < output.channels; ++c) {
      const double average = mean[c];
      if (!(average > 0) || !near(sum[c], pixels * average) ||
          !near(squares[c], pixels * (variance[c] + average * average)))
        return false;
    }
    return true;
  }
};

/// 16-bit numbers that are positive, small and different: sums of them in another order have other bits, and those of two channels differ. Their
/// bits begin with 0x38, as those of 0.5 to 1 in fp16 and of 3e-5 to 0.008 in bf16.
void make_pattern(core::Buffer& pattern) {
  std::minstd_rand random;
  auto* const bytes = reinterpret_cast<std::byte*>(pattern.data());
  for (std::size_t i = 0; i < kPattern; ++i) {
    const auto bits = static_cast<std::uint16_t>(0x3800U | (random() >> 8U & 0x3FFU));
    std::memcpy(bytes + i * sizeof bits, &bits, sizeof bits);
  }
}

/// Fills memory with the pattern, of `piece` bytes, again and again.
core::Result<void> fill(Stream& stream, const Scratch& scratch, std::size_t bytes, const core::Buffer& pattern,
                        std::size_t piece) {
  for (std::size_t at = 0; at < bytes; at += piece)
    if (auto copied = stream.copy_to_device(static_cast<std::byte*>(scratch.get()) + at, pattern.data(),
                                            std::min(piece, bytes - at));
        !copied)
      return copied;
  return {};
}

/// Elements of a result that are compared: as many as kProducts products of the host make, but some.
constexpr std::size_t kFewestSamples = 8;
constexpr std::size_t kMostSamples = 64;
constexpr std::int64_t kProducts = std::int64_t{1} << 20;
/// The largest error of an engine that computes in float32, relative to the samples, both as roots of mean squares. Factors that are rounded to TF32's 11
/// bits give about 3e-4; `products` that are summed one by one in float32 give 4e-8 times their root.
double exact_within(std::int64_t products) { return 3e-5 + 5e-8 * std::sqrt(static_cast<double>(products)); }

struct Sample {
  std::int64_t index;
  double value;
};

/// Of a result whose operands are the pattern, again and again.
std::vector<Sample> samples_of(const Convolution& description, core::ConstSpan pattern) {
  const ElementOf element = [pattern](std::int64_t index) -> double {
    return pattern[static_cast<std::size_t>(index) % pattern.size()];
  };
  const auto affordable =
      static_cast<std::size_t>(kProducts / std::max<std::int64_t>(products_of_an_element(description), 1));
  const std::int64_t elements = elements_of_the_result(description);
  std::vector<Sample> samples;
  std::minstd_rand random;
  for (std::size_t i = 0; i < std::clamp(affordable, kFewestSamples, kMostSamples); ++i) {
    const auto index = static_cast<std::int64_t>(random()) % elements;
    const double sum = element_of_the_result(description, index, element, element);
    samples.push_back({index, description.activation ? std::max(sum, 0.0) : sum});
  }
  return samples;
}

/// False if any is NaN.
bool are_near(const std::vector<Sample>& samples, const float* found, double tolerance) {
  double errors = 0, squares = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    errors += std::pow(found[i] - samples[i].value, 2);
    squares += std::pow(samples[i].value, 2);
  }
  return errors <= tolerance * tolerance * squares;
}

}  // namespace

core::Result<bool> remove_hiding_nan(Device& device, Stream& stream, const Convolution& description,
                                     std::vector<std::unique_ptr<ConvolutionPlan>>& plans) {
  if (description.activation != nn::Activation::relu || !description.bias) return true;
  const ConvolutionScratch scratch(device, description, plans);
  const std::size_t bytes = sized(description.shape.output.channels, description.type);
  auto host = core::Buffer::allocate(device.pinned(), core::align_floats((bytes + sizeof(float) - 1) / sizeof(float)),
                                     "the bias of a trial");
  if (!host && host.error().code != core::Errc::out_of_memory) return tl::unexpected(std::move(host.error()));
  if (!host || !scratch.is_there()) {
    plans.clear();
    return false;
  }
  std::memset(host->data(), kNanBytes, bytes);
  auto ready = stream.copy_to_device(scratch.bias.get(), host->data(), bytes);
  if (ready) ready = stream.synchronize();
  if (!ready) return tl::unexpected(std::move(ready.error()));
  std::erase_if(plans, [&](const std::unique_ptr<ConvolutionPlan>& plan) {
    std::memset(host->data(), 0, bytes);
    const bool fetched = stream.run(*plan, scratch.operands(), scratch.workspace.get()) &&
                         stream.copy_to_host(host->data(), scratch.y.get(), bytes_of(description.type));
    return !stream.synchronize() || !fetched || !is_nan(host->data(), description.type);
  });
  if (auto idle = stream.synchronize(); !idle) return tl::unexpected(std::move(idle.error()));
  return true;
}

core::Result<bool> remove_wrong_statistics(Device& device, Stream& stream, const Convolution& description,
                                           std::vector<std::unique_ptr<ConvolutionPlan>>& plans) {
  if (!description.statistics) return true;
  const ConvolutionScratch scratch(device, description, plans);
  const StatisticsScratch statistics(device, description);
  const auto channels = static_cast<std::size_t>(description.shape.output.channels);
  auto host = core::Buffer::allocate(device.pinned(), core::align_floats(4 * channels), "sums of a trial");
  if (!host && host.error().code != core::Errc::out_of_memory) return tl::unexpected(std::move(host.error()));
  auto pattern = core::Buffer::allocate(device.pinned(), core::align_floats((kPattern + 1) / 2), "numbers of a trial");
  if (!pattern && pattern.error().code != core::Errc::out_of_memory) return tl::unexpected(std::move(pattern.error()));
  if (!host || !pattern || !scratch.is_there() || !statistics.is_there()) {
    plans.clear();
    return false;
  }
  constexpr std::size_t kPiece = kPattern * sizeof(std::uint16_t);
  make_pattern(*pattern);
  const auto& shape = description.shape;
  auto ready = fill(stream, scratch.x, sized(shape.input.size(), description.type), *pattern, kPiece);
  if (ready) {
    const auto weights = shape.weights();
    ready = fill(stream, scratch.w, sized(weights, description.type), *pattern, kPiece);
  }
  const auto copied = stream.synchronize();  // also behind a failed copy: the pattern is read until then
  if (ready) ready = copied;
  if (!ready) return tl::unexpected(std::move(ready.error()));

  const std::size_t bytes = channels * sizeof(float);
  float* const fetched = host->data();
  const FetchedStatistics found{fetched, fetched + channels, fetched + 2 * channels, fetched + 3 * channels};
  const auto tried = [&](const ConvolutionPlan& plan) {
    std::memset(fetched, kNanBytes, 4 * bytes);
    const bool ran = stream.copy_to_device(scratch.sum.get(), fetched, bytes) &&
                     stream.copy_to_device(scratch.squares.get(), fetched, bytes) &&
                     stream.run(plan, scratch.operands(), scratch.workspace.get()) &&
                     stream.launch(statistics.kernel(scratch, false)) &&
                     stream.copy_to_host(fetched, scratch.sum.get(), bytes) &&
                     stream.copy_to_host(fetched + channels, scratch.squares.get(), bytes) &&
                     stream.copy_to_host(fetched + 2 * channels, statistics.mean.get(), bytes) &&
                     stream.copy_to_host(fetched + 3 * channels, statistics.variance.get(), bytes);
    return stream.synchronize() && ran && found.agree(description.shape.output, description.type);
  };
  std::erase_if(plans, [&](const std::unique_ptr<ConvolutionPlan>& plan) { return !tried(*plan); });
  if (auto idle = stream.synchronize(); !idle) return tl::unexpected(std::move(idle.error()));
  return true;
}

core::Result<void> remove_inexact(Device& device, Stream& stream, const Convolution& description,
                                  std::vector<std::unique_ptr<ConvolutionPlan>>& plans) {
  const bool is_comparable = !description.activation || description.activation == nn::Activation::relu;
  if (description.type != Type::fp32 || description.math != Math::fp32 || !is_comparable || plans.empty()) return {};
  const ConvolutionScratch scratch(device, description, plans);
  auto pattern = core::Buffer::allocate(device.pinned(), core::align_floats(kPattern), "numbers of a trial");
  if (!pattern) return tl::unexpected(std::move(pattern.error()));
  auto fetched = core::Buffer::allocate(device.pinned(), core::align_floats(kMostSamples), "results of a trial");
  if (!fetched) return tl::unexpected(std::move(fetched.error()));
  if (!scratch.is_there())
    return core::fail(core::Errc::out_of_memory,
                      "too little device memory to try engines for " + to_string(description));
  std::minstd_rand random;
  for (std::size_t i = 0; i < kPattern; ++i) (*pattern).data()[i] = static_cast<float>(random() * 0x1p-30 - 1);

  const auto& shape = description.shape;
  const auto forward = description.direction == Direction::forward;
  const auto backward_data = description.direction == Direction::backward_data;
  const auto& result = forward ? scratch.y : backward_data ? scratch.x : scratch.w;
  struct Operand {
    const Scratch* scratch;
    std::int64_t elements;
  };
  auto ready = core::Result<void>();
  for (const auto& [operand, elements] : {Operand{&scratch.x, shape.input.size()}, Operand{&scratch.w, shape.weights()},
                                          Operand{&scratch.y, shape.output.size()}})
    if (ready && operand != &result)
      ready = fill(stream, *operand, sized(elements, Type::fp32), *pattern, kPattern * sizeof(float));
  const auto copied = stream.synchronize();  // also behind a failed copy: the pattern is read until then
  if (ready) ready = copied;
  if (!ready) return ready;

  const std::vector<Sample> samples = samples_of(description, pattern->view().first(kPattern));
  const double tolerance = exact_within(products_of_an_element(description));
  core::Result<void> scarce;  // an engine for which memory ran out is no inexact one
  std::erase_if(plans, [&](const std::unique_ptr<ConvolutionPlan>& plan) {
    std::memset(fetched->data(), kNanBytes, samples.size() * sizeof(float));
    auto ran = stream.run(*plan, scratch.operands(), scratch.workspace.get());
    for (std::size_t i = 0; i < samples.size() && ran; ++i)
      ran = stream.copy_to_host(fetched->data() + i, result.floats() + samples[i].index, sizeof(float));
    const auto waited = stream.synchronize();
    if (!ran && ran.error().code == core::Errc::out_of_memory && scarce) scarce = ran;
    return !waited || !ran || !are_near(samples, fetched->data(), tolerance);
  });
  const auto idle = stream.synchronize();
  return idle ? scarce : idle;
}

core::Result<bool> remove_unfit(Device& device, Stream& stream, const Convolution& description,
                                std::vector<std::unique_ptr<ConvolutionPlan>>& plans) {
  if (!device.has_exact_engines())
    if (auto removed = remove_inexact(device, stream, description, plans); !removed)
      return tl::unexpected(std::move(removed.error()));
  auto tried = remove_hiding_nan(device, stream, description, plans);
  return tried && *tried ? remove_wrong_statistics(device, stream, description, plans) : tried;
}

}  // namespace troupe::gpu
