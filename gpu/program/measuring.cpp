#include "gpu/program/measuring.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

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
template <class Plan, class Operands>
std::unique_ptr<StepGraph> capture(Stream& stream, const Plan& plan, const Operands& operands, void* workspace) {
  if (!stream.begin_capture()) return nullptr;
  bool ran = true;
  for (int i = 0; i < kExecutions && ran; ++i) ran = stream.run(plan, operands, workspace).has_value();
  auto graph = stream.end_capture();  // also after a failed call
  return ran && graph ? std::move(*graph) : nullptr;
}

/// Seconds of one execution; none if it fails, as engines may that a library offers. Without a graph the time between two executions, which
/// the host needs, would count: it is longer than most engines take.
template <class Plan, class Operands>
std::optional<double> seconds(Device& device, Stream& stream, Event& first, Event& last, const Plan& plan,
                              const Operands& operands, void* workspace) {
  if (!stream.run(plan, operands, workspace) || !stream.synchronize()) return std::nullopt;
  const auto graph = capture(stream, plan, operands, workspace);
  if (!graph) return std::nullopt;
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    if (!stream.record(first) || !stream.launch(*graph) || !stream.record(last) || !stream.synchronize())
      return std::nullopt;
    const auto took = device.seconds_between(first, last);
    if (!took) return std::nullopt;
    best = std::min(best, *took / kExecutions);
  }
  return best;
}

template <class Plan, class Operands>
core::Result<Fastest> measure(Device& device, Stream& stream, const std::vector<std::unique_ptr<Plan>>& plans,
                              const Operands& operands, void* workspace) {
  auto first = device.make_event();
  if (!first) return tl::unexpected(std::move(first.error()));
  auto last = device.make_event();
  if (!last) return tl::unexpected(std::move(last.error()));
  Fastest best;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const auto took = seconds(device, stream, **first, **last, *plans[i], operands, workspace);
    if (took && (best.seconds == 0 || *took < best.seconds)) best = {i, *took};
  }
  (void)stream.synchronize();  // an engine that failed may still use the memory
  return best;
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
        workspace(device, largest_workspace(plans)) {}
  [[nodiscard]] bool is_there() const {
    return std::ranges::all_of(std::array{&x, &w, &y, &bias, &addend, &workspace}, &Scratch::is_there);
  }
  [[nodiscard]] ConvolutionOperands operands() const { return {x.get(), w.get(), y.get(), bias.get(), addend.get()}; }
  static std::int64_t weights_of(const ConvolutionShape& shape) {
    return shape.output.channels * shape.kernel * shape.kernel * shape.input.channels / shape.groups;
  }

  Scratch x, w, y, bias, addend, workspace;
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

}  // namespace

core::Result<bool> remove_hiding_nan(Device& device, Stream& stream, const Convolution& description,
                                     std::vector<std::unique_ptr<ConvolutionPlan>>& plans) {
  if (description.activation != nn::Activation::relu || !description.bias) return true;
  const ConvolutionScratch scratch(device, description, plans);
  const std::size_t bytes = sized(description.shape.output.channels, description.type);
  auto host = core::Buffer::allocate(device.pinned(), core::align_floats((bytes + sizeof(float) - 1) / sizeof(float)),
                                     "a bias that is none");
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
