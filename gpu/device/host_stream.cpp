#include "gpu/device/host_stream.hpp"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "gpu/device/host_launch.hpp"
#include "gpu/device/host_products.hpp"
#include "gpu/kernels/kernel_ranges.hpp"

namespace troupe::gpu::host {
namespace {

constexpr std::size_t kWorkspaceAlignment = 256;
constexpr int kScribble = 0x5A;

std::size_t bytes_of(std::int64_t count, Type type) { return static_cast<std::size_t>(count) * gpu::bytes_of(type); }

/// What an engine leaves in its workspace.
void scribble(void* workspace, std::size_t bytes) {
  if (bytes > 0) std::memset(found(workspace), kScribble, bytes);
}

template <class Operands>
Operands found_in(Operands operands) {
  find_addresses(&operands, sizeof operands);
  return operands;
}

tl::unexpected<core::Error> refused(const std::string& message) { return core::fail(core::Errc::io, message); }

}  // namespace

HostStream::~HostStream() {
  device_.queue().drain(id_);
  device_.queue().remove_stream(id_);
}

void HostStream::add(HostQueue::Work work) {
  if (capturing_)
    captured_.push_back(std::move(work));
  else
    device_.queue().add(id_, std::move(work));
}

core::Result<void> HostStream::check_device(const char* operation, const Operand& operand) const {
  if (operand.bytes == 0 || device_.has_in_reach(operand.memory, operand.bytes)) return {};
  return refused(fmt::format("{}: {} bytes of {} at {} are no device memory of this device", operation, operand.bytes,
                             operand.name, operand.memory));
}

core::Result<void> HostStream::check_pinned(const char* operation, const Operand& operand) const {
  if (operand.bytes == 0 || device_.pinned_memory().contains(operand.memory, operand.bytes)) return {};
  return refused(fmt::format("{}: {} bytes of {} at {} are no pinned memory of this device", operation, operand.bytes,
                             operand.name, operand.memory));
}

core::Result<void> HostStream::check_operands(const std::string& operation, const std::vector<Operand>& operands,
                                              void* workspace, std::size_t workspace_bytes) const {
  for (const Operand& operand : operands) {
    if (auto ok = check_device(operation.c_str(), operand); !ok) return ok;
    if (operand.bytes > 0 && reinterpret_cast<std::uintptr_t>(operand.memory) % kTensorAlignment != 0)
      return refused(fmt::format("{}: {} is not aligned to {} bytes", operation, operand.name, kTensorAlignment));
  }
  if (reinterpret_cast<std::uintptr_t>(workspace) % kWorkspaceAlignment != 0)
    return refused(fmt::format("{}: its workspace is not aligned to {} bytes", operation, kWorkspaceAlignment));
  return check_device(operation.c_str(), {"workspace", workspace, workspace_bytes});
}

core::Result<void> HostStream::outside_capture(const char* operation) const {
  if (capturing_) return refused(fmt::format("{} while a step is captured", operation));
  return {};
}

core::Result<void> HostStream::copy_to_device(void* device, const void* pinned, std::size_t bytes) {
  if (auto ok = check_pinned("copy to the device", {"source", pinned, bytes}); !ok) return ok;
  if (auto ok = check_device("copy to the device", {"target", device, bytes}); !ok) return ok;
  add([=] { std::memcpy(found(device), pinned, bytes); });
  return {};
}

core::Result<void> HostStream::copy_to_host(void* pinned, const void* device, std::size_t bytes) {
  if (auto ok = check_device("copy to the host", {"source", device, bytes}); !ok) return ok;
  if (auto ok = check_pinned("copy to the host", {"target", pinned, bytes}); !ok) return ok;
  add([=] { std::memcpy(pinned, found(device), bytes); });
  return {};
}

core::Result<void> HostStream::copy(void* to, const void* from, std::size_t bytes) {
  if (auto ok = check_device("copy", {"source", from, bytes}); !ok) return ok;
  if (auto ok = check_device("copy", {"target", to, bytes}); !ok) return ok;
  add([=] { std::memmove(found(to), found(from), bytes); });
  return {};
}

core::Result<void> HostStream::zero(void* device, std::size_t bytes) {
  if (auto ok = check_device("zero", {"target", device, bytes}); !ok) return ok;
  add([=] { std::memset(found(device), 0, bytes); });
  return {};
}

core::Result<void> HostStream::launch(const Kernel& kernel) {
  for (const KernelRange& range : ranges_of(kernel))
    if (auto ok = check_device("launch of a kernel", {range.name, range.memory, range.bytes}); !ok) return ok;
  const auto order = device_.options().schedule_seed ? ThreadOrder::descending : ThreadOrder::ascending;
  Kernel here = kernel;
  std::visit([](auto& call) { find_addresses(&call, sizeof call); }, here);
  add([here, order] { execute(here, order); });
  return {};
}

core::Result<void> HostStream::run(const ConvolutionPlan& plan, const ConvolutionOperands& operands, void* workspace) {
  const auto& mine = static_cast<const HostConvolutionPlan&>(plan);
  const Convolution& c = mine.description();
  const Type weights = c.direction == Direction::backward_weights ? c.weight_gradient : c.type;
  auto ok =
      check_operands(to_string(c),
                     {{"x", operands.x, bytes_of(c.shape.input.size(), c.type)},
                      {"w", operands.w, bytes_of(c.shape.weights(), weights)},
                      {"y", operands.y, bytes_of(c.shape.output.size(), c.type)},
                      {"bias", operands.bias, c.bias ? bytes_of(c.shape.output.channels, c.type) : 0},
                      {"addend", operands.addend, c.addend ? bytes_of(c.shape.output.size(), c.type) : 0},
                      {"sum", operands.sum, c.statistics ? bytes_of(c.shape.output.channels, Type::fp32) : 0},
                      {"squares", operands.squares, c.statistics ? bytes_of(c.shape.output.channels, Type::fp32) : 0}},
                     workspace, plan.workspace());
  if (!ok) return ok;
  add([c, operands = found_in(operands), workspace, bytes = plan.workspace()] {
    scribble(workspace, bytes);
    convolve(c, operands);
  });
  return {};
}

core::Result<void> HostStream::run(const MatrixPlan& plan, const MatrixOperands& operands, void* workspace) {
  const auto& mine = static_cast<const HostMatrixPlan&>(plan);
  const MatrixProduct& p = mine.description();
  auto ok = check_operands(to_string(p),
                           {{"a", operands.a, bytes_of(p.m * p.k, p.type)},
                            {"b", operands.b, bytes_of(p.k * p.n, p.type)},
                            {"d", operands.d, bytes_of(p.m * p.n, p.output)},
                            {"bias", operands.bias, p.bias ? bytes_of(p.n, p.output) : 0}},
                           workspace, plan.workspace());
  if (!ok) return ok;
  add([p, operands = found_in(operands), workspace, bytes = plan.workspace()] {
    scribble(workspace, bytes);
    multiply(p, operands);
  });
  return {};
}

core::Result<void> HostStream::record(Event& event) {
  if (auto ok = outside_capture("an event was recorded"); !ok) return ok;
  device_.queue().record(id_, static_cast<HostEvent&>(event).state);
  return {};
}

core::Result<void> HostStream::wait(Event& event) {
  if (auto ok = outside_capture("a stream was told to wait"); !ok) return ok;
  device_.queue().wait(id_, static_cast<HostEvent&>(event).state);
  return {};
}

core::Result<void> HostStream::synchronize() {
  if (auto ok = outside_capture("the host waited"); !ok) return ok;
  device_.queue().drain(id_);
  return {};
}

core::Result<void> HostStream::begin_capture() {
  if (auto ok = outside_capture("a capture began"); !ok) return ok;
  capturing_ = true;
  return {};
}

core::Result<std::unique_ptr<StepGraph>> HostStream::end_capture() {
  if (!capturing_) return refused("a capture ended that had not begun");
  capturing_ = false;
  return std::make_unique<HostGraph>(std::exchange(captured_, {}));
}

core::Result<void> HostStream::launch(const StepGraph& graph) {
  if (auto ok = outside_capture("a step was launched"); !ok) return ok;
  for (const auto& work : static_cast<const HostGraph&>(graph).work()) device_.queue().add(id_, work);
  return {};
}

}  // namespace troupe::gpu::host
