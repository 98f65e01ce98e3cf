#include "gpu/device/host_device.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gpu/device/host_stream.hpp"

namespace troupe::gpu {
namespace {

/// As the libraries of a device: a bias, or a bias with relu.
bool is_fused(bool bias, bool addend, const std::optional<nn::Activation>& activation) {
  return !addend && (!activation || (bias && *activation == nn::Activation::relu));
}

template <class Plan, class Base, class Description>
core::Result<std::vector<std::unique_ptr<Base>>> host_plans(const Description& description, bool accepted,
                                                            std::size_t workspace) {
  if (!accepted) return core::fail(core::Errc::config, fmt::format("{}: no engine fuses this", to_string(description)));
  std::vector<std::unique_ptr<Base>> plans;
  if (workspace >= kHostWorkspace) plans.push_back(std::make_unique<Plan>(description, true));
  plans.push_back(std::make_unique<Plan>(description, false));
  return plans;
}

template <class Plan>
core::Result<std::unique_ptr<Plan>> named(core::Result<std::vector<std::unique_ptr<Plan>>> plans,
                                          const std::string& engine) {
  if (!plans) return tl::unexpected(plans.error());
  for (auto& plan : *plans)
    if (plan->engine() == engine) return std::move(plan);
  return core::fail(core::Errc::config, fmt::format("the host has no engine \"{}\" within this workspace", engine));
}

}  // namespace

HostDevice::HostDevice(const HostDeviceOptions& options)
    : options_(options),
      memory_(core::MemorySpace::device, options.memory, options.hides_memory),
      pinned_(core::MemorySpace::host_pinned, std::numeric_limits<std::ptrdiff_t>::max()),
      shared_(std::make_shared<host::SharedRanges>()),
      queue_(options.schedule_seed, options.executes_lazily) {
  info_.name = "host";
  info_.uuid = "host";
  info_.multiprocessors = 1;
  info_.memory = options.memory;
  info_.libraries = "host";
}

HostDevice::~HostDevice() = default;

core::Result<bool> HostDevice::reach(Device& peer) {
  const auto* const other = dynamic_cast<const HostDevice*>(&peer);
  if (other == nullptr) return false;
  const std::lock_guard lock(peers_mutex_);
  if (std::ranges::find(peers_, other) == peers_.end()) peers_.push_back(other);
  return true;
}

core::Result<std::shared_ptr<core::DeviceSharing>> HostDevice::sharing() {
  if (options_.shares.empty()) return core::fail(core::Errc::config, "this device shares no memory");
  return std::make_shared<host::HostSharing>(shared_, options_.shares, options_.memory, options_.hides_memory);
}

bool HostDevice::has_in_reach(const void* memory, std::size_t bytes) const {
  const auto has = [&](const HostDevice& device) {
    return device.memory_.contains(memory, bytes) || device.shared_->contains(memory, bytes);
  };
  if (has(*this)) return true;
  const std::lock_guard lock(peers_mutex_);
  return std::ranges::any_of(peers_, [&](const HostDevice* peer) { return has(*peer); });
}

core::Result<std::unique_ptr<Stream>> HostDevice::make_stream() { return std::make_unique<host::HostStream>(*this); }

core::Result<std::unique_ptr<Event>> HostDevice::make_event() { return std::make_unique<host::HostEvent>(); }

core::Result<std::vector<std::unique_ptr<ConvolutionPlan>>> HostDevice::plans(const Convolution& convolution,
                                                                              std::size_t workspace) {
  const bool sums = !convolution.statistics || (options_.sums_statistics && convolution.type != Type::fp32 &&
                                                convolution.direction == Direction::forward);
  const bool accepted =
      sums && (options_.fuses_everything || is_fused(convolution.bias, convolution.addend, convolution.activation));
  auto plans = host_plans<host::HostConvolutionPlan, ConvolutionPlan>(convolution, accepted, workspace);
  if (!plans || !convolution.statistics || !options_.sums_when_staged) return plans;
  plans->pop_back();
  if (plans->empty())
    return core::fail(core::Errc::config, fmt::format("{}: it needs workspace", to_string(convolution)));
  return plans;
}

core::Result<std::vector<std::unique_ptr<MatrixPlan>>> HostDevice::plans(const MatrixProduct& product,
                                                                         std::size_t workspace) {
  const bool accepted = options_.mixes_types || !product.bias || product.output == product.type;
  return host_plans<host::HostMatrixPlan, MatrixPlan>(product, accepted, workspace);
}

core::Result<std::unique_ptr<ConvolutionPlan>> HostDevice::plan(const Convolution& convolution, std::size_t workspace,
                                                                const std::string& engine) {
  return named(plans(convolution, workspace), engine);
}

core::Result<std::unique_ptr<MatrixPlan>> HostDevice::plan(const MatrixProduct& product, std::size_t workspace,
                                                           const std::string& engine) {
  return named(plans(product, workspace), engine);
}

core::Result<double> HostDevice::seconds_between(const Event& first, const Event& second) {
  const auto& before = *static_cast<const host::HostEvent&>(first).state;
  const auto& after = *static_cast<const host::HostEvent&>(second).state;
  if (before.reached == 0 || after.reached == 0)
    return core::fail(core::Errc::io, "seconds between events of which one has not been reached");
  return after.seconds - before.seconds;
}

}  // namespace troupe::gpu
