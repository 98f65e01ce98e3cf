#include "gpu/program/measuring.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>

namespace troupe::gpu {
namespace {

/// Executions that are timed together, behind one that is not; the fastest round counts.
constexpr int kExecutions = 4;
constexpr int kRounds = 3;

/// Device memory of one role, freed at the end.
class Scratch {
 public:
  Scratch(Device& device, std::size_t bytes) : device_(device), bytes_(bytes) {
    if (bytes == 0) return;
    if (auto allocated = device.memory().allocate(bytes)) memory_ = *allocated;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (memory_ != nullptr) device_.memory().deallocate(memory_, bytes_);
  }
  [[nodiscard]] bool is_there() const noexcept { return bytes_ == 0 || memory_ != nullptr; }
  [[nodiscard]] void* get() const noexcept { return memory_; }
  [[nodiscard]] float* floats() const noexcept { return static_cast<float*>(memory_); }

 private:
  Device& device_;
  std::size_t bytes_;
  void* memory_ = nullptr;
};

std::size_t sized(std::int64_t count, Type type) { return static_cast<std::size_t>(count) * bytes_of(type); }

template <class Plan>
std::size_t largest_workspace(const std::vector<std::unique_ptr<Plan>>& plans) {
  std::size_t bytes = 0;
  for (const auto& plan : plans) bytes = std::max(bytes, plan->workspace());
  return bytes;
}

/// Several executions as one captured step, which is how a step launches them. Null: a step with this engine cannot be captured.
template <class Run>
std::unique_ptr<StepGraph> capture(Stream& stream, const Run& run) {
  if (!stream.begin_capture()) return nullptr;
  bool ran = true;
  for (int i = 0; i < kExecutions && ran; ++i) ran = run().has_value();
  auto graph = stream.end_capture();  // also after a failed call
  return ran && graph ? std::move(*graph) : nullptr;
}

/// The events between which an execution is timed.
struct Moments {
  std::unique_ptr<Event> first;
  std::unique_ptr<Event> last;
  static core::Result<Moments> make(Device& device) {
    auto first = device.make_event();
    if (!first) return tl::unexpected(std::move(first.error()));
    auto last = device.make_event();
    if (!last) return tl::unexpected(std::move(last.error()));
    return Moments{std::move(*first), std::move(*last)};
  }
};

/// Seconds of one execution; none if it fails, as engines may that a library offers. Without a graph the time between two executions, which
/// the host needs, would count: it is longer than most engines take.
template <class Run>
std::optional<double> seconds(Device& device, Stream& stream, const Moments& moments, const Run& run) {
  if (!run() || !stream.synchronize()) return std::nullopt;
  const auto graph = capture(stream, run);
  if (!graph) return std::nullopt;
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    if (!stream.record(*moments.first) || !stream.launch(*graph) || !stream.record(*moments.last) ||
        !stream.synchronize())
      return std::nullopt;
    const auto took = device.seconds_between(*moments.first, *moments.last);
    if (!took) return std::nullopt;
    best = std::min(best, *took / kExecutions);
  }
  return best;
}

/// The fastest of `plans`; run(plan) enqueues what counts.
template <class Plan, class Run>
Fastest fastest_of(Device& device, Stream& stream, const Moments& moments,
                   const std::vector<std::unique_ptr<Plan>>& plans, const Run& run) {
  Fastest best;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const auto took = seconds(device, stream, moments, [&] { return run(*plans[i]); });
    if (took && (best.seconds == 0 || *took < best.seconds)) best = {i, *took};
  }
  (void)stream.synchronize();  // an engine that failed may still use the memory
  return best;
}

template <class Plan, class Operands>
core::Result<Fastest> measure(Device& device, Stream& stream, const std::vector<std::unique_ptr<Plan>>& plans,
                              const Operands& operands, void* workspace) {
  const auto moments = Moments::make(device);
  if (!moments) return tl::unexpected(moments.error());
  return fastest_of(device, stream, *moments, plans,
                    [&](const Plan& plan) { return stream.run(plan, operands, workspace); });
}

/// The memory of a convolution's operands, and a workspace for the largest of the plans.
struct ConvolutionScratch {
  ConvolutionScratch(Device& device, const Convolution& description,
                     const std::vector<std::unique_ptr<ConvolutionPlan>>& plans)
      : x(device, sized(description.shape.input.size(), description.type)),
        w(device, sized(weights_of(description.shape), Type::fp32)),  // as gradients may be
        y(device, sized(description.shape.output.size(), description.type)),
        bias(device, description.bias ? sized(description.shape.output.channels, description.type) : 0),
        addend(device, description.addend ? sized(description.shape.output.size(), description.type) : 0),
        sum(device, description.statistics ? sized(description.shape.output.channels, Type::fp32) : 0),
        squares(device, description.statistics ? sized(description.shape.output.channels, Type::fp32) : 0),
        workspace(device, largest_workspace(plans)) {}
  [[nodiscard]] bool is_there() const {
    return std::ranges::all_of(std::array{&x, &w, &y, &bias, &addend, &sum, &squares, &workspace}, &Scratch::is_there);
  }
  [[nodiscard]] ConvolutionOperands operands() const {
    return {x.get(), w.get(), y.get(), bias.get(), addend.get(), sum.floats(), squares.floats()};
  }
  static std::int64_t weights_of(const ConvolutionShape& shape) {
    return shape.output.channels * shape.kernel * shape.kernel * shape.input.channels / shape.groups;
  }

  Scratch x, w, y, bias, addend, sum, squares, workspace;
};

/// What the statistics of a convolution's output are written to.
struct StatisticsScratch {
  StatisticsScratch(Device& device, const Convolution& description)
      : output(description.shape.output),
        type(description.type),
        mean(device, sized(output.channels, Type::fp32)),
        deviation(device, sized(output.channels, Type::fp32)),
        variance(device, sized(output.channels, Type::fp32)),
        chunks(device, batch_norm_scratch(output.pixels(), output.channels) * sizeof(float)) {}
  [[nodiscard]] bool is_there() const {
    return std::ranges::all_of(std::array{&mean, &deviation, &variance, &chunks}, &Scratch::is_there);
  }
  /// Of y, which is read; with `summed` from the sums.
  [[nodiscard]] Kernel kernel(const ConvolutionScratch& of, bool summed) const {
    return BatchStatistics{.x = of.y.get(),
                           .mean = mean.floats(),
                           .inverse_deviation = deviation.floats(),
                           .scratch = chunks.floats(),
                           .pixels = output.pixels(),
                           .channels = output.channels,
                           .type = type,
                           .variance = variance.floats(),
                           .sum = summed ? of.sum.floats() : nullptr,
                           .squares = summed ? of.squares.floats() : nullptr};
  }

  TensorShape output;
  Type type;
  Scratch mean, deviation, variance, chunks;
};

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
  /// NaN does not.
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

/// Fills memory with the pattern, again and again.
core::Result<void> fill(Stream& stream, const Scratch& scratch, std::size_t bytes, const core::Buffer& pattern) {
  constexpr std::size_t kPiece = kPattern * sizeof(std::uint16_t);
  for (std::size_t at = 0; at < bytes; at += kPiece)
    if (auto copied = stream.copy_to_device(static_cast<std::byte*>(scratch.get()) + at, pattern.data(),
                                            std::min(kPiece, bytes - at));
        !copied)
      return copied;
  return {};
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
  make_pattern(*pattern);
  const auto& shape = description.shape;
  auto ready = fill(stream, scratch.x, sized(shape.input.size(), description.type), *pattern);
  if (ready) {
    const auto weights = ConvolutionScratch::weights_of(shape);
    ready = fill(stream, scratch.w, sized(weights, description.type), *pattern);
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
  std::erase_if(plans, [&](const std::unique_ptr<ConvolutionPlan>& plan) {
    if (!tried(*plan)) return true;
    const std::vector<float> first(fetched, fetched + 2 * channels);
    for (int again = 0; again < 2; ++again)
      if (!tried(*plan) || (description.deterministic && std::memcmp(first.data(), fetched, 2 * bytes) != 0))
        return true;
    return false;
  });
  if (auto idle = stream.synchronize(); !idle) return tl::unexpected(std::move(idle.error()));
  return true;
}

core::Result<bool> remove_unfit(Device& device, Stream& stream, const Convolution& description,
                                std::vector<std::unique_ptr<ConvolutionPlan>>& plans) {
  auto tried = remove_hiding_nan(device, stream, description, plans);
  return tried && *tried ? remove_wrong_statistics(device, stream, description, plans) : tried;
}

core::Result<StatisticsTimes> time_statistics(Device& device, Stream& stream, const Convolution& description,
                                              const std::vector<std::unique_ptr<ConvolutionPlan>>& plans,
                                              const ConvolutionPlan& apart) {
  const ConvolutionScratch scratch(device, description, plans);
  const StatisticsScratch statistics(device, description);
  const Scratch workspace(device, apart.workspace());
  if (!scratch.is_there() || !statistics.is_there() || !workspace.is_there()) return StatisticsTimes{};
  const auto moments = Moments::make(device);
  if (!moments) return tl::unexpected(moments.error());
  const auto run = [&](const ConvolutionPlan& plan, void* memory, bool summed) -> core::Result<void> {
    if (auto ran = stream.run(plan, scratch.operands(), memory); !ran) return ran;
    return stream.launch(statistics.kernel(scratch, summed));
  };
  StatisticsTimes times;
  times.summed = fastest_of(device, stream, *moments, plans,
                            [&](const ConvolutionPlan& plan) { return run(plan, scratch.workspace.get(), true); });
  times.apart = seconds(device, stream, *moments, [&] { return run(apart, workspace.get(), false); }).value_or(0);
  (void)stream.synchronize();  // as above
  return times;
}

core::Result<Fastest> fastest(Device& device, Stream& stream, const Convolution& description,
                              const std::vector<std::unique_ptr<ConvolutionPlan>>& plans) {
  if (plans.size() < 2) return Fastest{};
  const ConvolutionScratch scratch(device, description, plans);
  if (!scratch.is_there()) return Fastest{};
  return measure(device, stream, plans, scratch.operands(), scratch.workspace.get());
}

core::Result<Fastest> fastest(Device& device, Stream& stream, const MatrixProduct& description,
                              const std::vector<std::unique_ptr<MatrixPlan>>& plans) {
  if (plans.size() < 2) return Fastest{};
  const Scratch a(device, sized(description.m * description.k, description.type));
  const Scratch b(device, sized(description.k * description.n, description.type));
  const Scratch d(device, sized(description.m * description.n, description.output));
  const Scratch bias(device, description.bias ? sized(description.n, description.output) : 0);
  const Scratch workspace(device, largest_workspace(plans));
  for (const Scratch* scratch : {&a, &b, &d, &bias, &workspace})
    if (!scratch->is_there()) return Fastest{};
  return measure(device, stream, plans, MatrixOperands{a.get(), b.get(), d.get(), bias.get()}, workspace.get());
}

}  // namespace troupe::gpu
