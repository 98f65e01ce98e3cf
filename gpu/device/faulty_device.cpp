#include "gpu/device/faulty_device.hpp"

#include <utility>

#include <fmt/format.h>

namespace troupe::gpu {
namespace {

/// What an object of a FaultyDevice holds: the device's own object, and its part of the count of live ones.
using Live = std::shared_ptr<const int>;

struct FaultyEvent final : Event {
  FaultyEvent(std::unique_ptr<Event> inner, Live live) : inner(std::move(inner)), live(std::move(live)) {}
  std::unique_ptr<Event> inner;
  Live live;
};
struct FaultyGraph final : StepGraph {
  FaultyGraph(std::unique_ptr<StepGraph> inner, Live live) : inner(std::move(inner)), live(std::move(live)) {}
  std::unique_ptr<StepGraph> inner;
  Live live;
};
template <class Plan>
struct FaultyPlan final : Plan {
  FaultyPlan(std::unique_ptr<Plan> inner, Live live) : inner(std::move(inner)), live(std::move(live)) {}
  [[nodiscard]] std::size_t workspace() const noexcept override { return inner->workspace(); }
  [[nodiscard]] std::string engine() const override { return inner->engine(); }
  std::unique_ptr<Plan> inner;
  Live live;
};

class FaultyStream final : public Stream {
 public:
  FaultyStream(std::unique_ptr<Stream> inner, std::shared_ptr<FaultPlan> faults, Live live)
      : inner_(std::move(inner)), faults_(std::move(faults)), live_(std::move(live)) {}

  core::Result<void> copy_to_device(void* device, const void* pinned, std::size_t bytes) override {
    return checked(CallKind::copy, [&] { return inner_->copy_to_device(device, pinned, bytes); });
  }
  core::Result<void> copy_to_host(void* pinned, const void* device, std::size_t bytes) override {
    return checked(CallKind::copy, [&] { return inner_->copy_to_host(pinned, device, bytes); });
  }
  core::Result<void> copy(void* to, const void* from, std::size_t bytes) override {
    return checked(CallKind::copy, [&] { return inner_->copy(to, from, bytes); });
  }
  core::Result<void> zero(void* device, std::size_t bytes) override {
    return checked(CallKind::copy, [&] { return inner_->zero(device, bytes); });
  }
  core::Result<void> launch(const Kernel& kernel) override {
    return checked(CallKind::launch, [&] { return inner_->launch(kernel); });
  }
  core::Result<void> run(const ConvolutionPlan& plan, const ConvolutionOperands& operands, void* workspace) override {
    const auto& own = *static_cast<const FaultyPlan<ConvolutionPlan>&>(plan).inner;
    return checked(CallKind::run, [&] { return inner_->run(own, operands, workspace); });
  }
  core::Result<void> run(const MatrixPlan& plan, const MatrixOperands& operands, void* workspace) override {
    const auto& own = *static_cast<const FaultyPlan<MatrixPlan>&>(plan).inner;
    return checked(CallKind::run, [&] { return inner_->run(own, operands, workspace); });
  }
  core::Result<void> record(Event& event) override {
    return checked(CallKind::record, [&] { return inner_->record(*static_cast<FaultyEvent&>(event).inner); });
  }
  core::Result<void> wait(Event& event) override {
    return checked(CallKind::wait, [&] { return inner_->wait(*static_cast<FaultyEvent&>(event).inner); });
  }
  core::Result<void> synchronize() override {
    return checked(CallKind::synchronize, [&] { return inner_->synchronize(); });
  }
  core::Result<void> begin_capture() override {
    return checked(CallKind::capture, [&] { return inner_->begin_capture(); });
  }
  core::Result<std::unique_ptr<StepGraph>> end_capture() override {
    auto failed = faults_->call(CallKind::capture);
    auto graph = inner_->end_capture();  // also when it is to fail: afterwards the stream does not capture
    if (!failed) return tl::unexpected(failed.error());
    if (!graph) return graph;
    return std::make_unique<FaultyGraph>(std::move(*graph), live_);
  }
  core::Result<void> launch(const StepGraph& graph) override {
    return checked(CallKind::graph, [&] { return inner_->launch(*static_cast<const FaultyGraph&>(graph).inner); });
  }
  [[nodiscard]] void* native() noexcept override { return inner_->native(); }
  void push_range(const char* name) noexcept override { inner_->push_range(name); }
  void pop_range() noexcept override { inner_->pop_range(); }

 private:
  template <class Call>
  core::Result<void> checked(CallKind kind, const Call& call) {
    if (auto failed = faults_->call(kind); !failed) return failed;
    return call();
  }
  std::unique_ptr<Stream> inner_;
  std::shared_ptr<FaultPlan> faults_;
  Live live_;
};

template <class Plan>
core::Result<std::vector<std::unique_ptr<Plan>>> wrap(core::Result<std::vector<std::unique_ptr<Plan>>> plans,
                                                      const Live& live) {
  if (!plans) return plans;
  for (auto& plan : *plans) plan = std::make_unique<FaultyPlan<Plan>>(std::move(plan), live);
  return plans;
}
template <class Plan>
core::Result<std::unique_ptr<Plan>> wrap(core::Result<std::unique_ptr<Plan>> plan, const Live& live) {
  if (!plan) return plan;
  return std::make_unique<FaultyPlan<Plan>>(std::move(*plan), live);
}

}  // namespace

const char* to_string(CallKind kind) noexcept {
  constexpr std::array<const char*, kCallKinds> kNames{"allocation",   "pinned allocation",
                                                       "make_stream",  "make_event",
                                                       "plan",         "copy",
                                                       "launch",       "run",
                                                       "record",       "wait",
                                                       "synchronize",  "capture",
                                                       "graph launch", "seconds_between",
                                                       "sharing"};
  return kNames[static_cast<std::size_t>(kind)];
}

void FaultPlan::set(std::optional<Fault> fault) {
  const std::lock_guard lock(mutex_);
  fault_ = fault;
  calls_ = {};
  struck_ = false;
}

core::Result<void> FaultPlan::call(CallKind kind) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t number = ++calls_[static_cast<std::size_t>(kind)];
  if (!fault_) return {};
  const bool first = kind == fault_->kind && number == fault_->number;
  if (!first && !(struck_ && fault_->lost)) return {};
  struck_ = true;
  return core::fail(
      first ? fault_->code : core::Errc::io,
      fmt::format("{} {} fails, as the test wants it{}", to_string(kind), number, first ? "" : ": device lost"));
}

std::uint64_t FaultPlan::calls(CallKind kind) const {
  const std::lock_guard lock(mutex_);
  return calls_[static_cast<std::size_t>(kind)];
}

bool FaultPlan::struck() const {
  const std::lock_guard lock(mutex_);
  return struck_;
}

class FaultyDevice::FaultyAllocator final : public core::Allocator {
 public:
  FaultyAllocator(core::Allocator& inner, std::shared_ptr<FaultPlan> faults, CallKind kind)
      : inner_(inner), faults_(std::move(faults)), kind_(kind) {}
  [[nodiscard]] core::MemorySpace space() const noexcept override { return inner_.space(); }
  [[nodiscard]] core::Result<void*> allocate(std::size_t bytes) override {
    if (auto failed = faults_->call(kind_); !failed) return tl::unexpected(failed.error());
    return inner_.allocate(bytes);
  }
  void deallocate(void* memory, std::size_t bytes) noexcept override { inner_.deallocate(memory, bytes); }

 private:
  core::Allocator& inner_;
  std::shared_ptr<FaultPlan> faults_;
  CallKind kind_;
};

class FaultyDevice::FaultySharing final : public core::DeviceSharing {
 public:
  FaultySharing(std::shared_ptr<core::DeviceSharing> inner, std::shared_ptr<FaultPlan> faults)
      : inner_(std::move(inner)), faults_(std::move(faults)), memory_(inner_->memory(), faults_, CallKind::sharing) {}
  [[nodiscard]] core::Allocator& memory() noexcept override { return memory_; }
  [[nodiscard]] core::Result<std::string> handle_of(void* allocation) override {
    if (auto failed = faults_->call(CallKind::sharing); !failed) return tl::unexpected(failed.error());
    return inner_->handle_of(allocation);
  }
  [[nodiscard]] core::Result<std::shared_ptr<void>> open(const std::string& handle, std::size_t bytes) override {
    if (auto failed = faults_->call(CallKind::sharing); !failed) return tl::unexpected(failed.error());
    return inner_->open(handle, bytes);
  }

 private:
  const std::shared_ptr<core::DeviceSharing> inner_;
  const std::shared_ptr<FaultPlan> faults_;
  FaultyAllocator memory_;
};

FaultyDevice::FaultyDevice(Device& device)
    : device_(device),
      faults_(std::make_shared<FaultPlan>()),
      live_(std::make_shared<const int>(0)),
      memory_(std::make_unique<FaultyAllocator>(device.memory(), faults_, CallKind::allocation)),
      pinned_(std::make_unique<FaultyAllocator>(device.pinned(), faults_, CallKind::pinned_allocation)) {}

FaultyDevice::~FaultyDevice() = default;

core::Allocator& FaultyDevice::memory() noexcept { return *memory_; }

core::Allocator& FaultyDevice::pinned() noexcept { return *pinned_; }

core::Result<std::shared_ptr<core::DeviceSharing>> FaultyDevice::sharing() {
  if (auto failed = faults_->call(CallKind::sharing); !failed) return tl::unexpected(failed.error());
  auto inner = device_.sharing();
  if (!inner) return inner;
  return std::make_shared<FaultySharing>(std::move(*inner), faults_);
}

core::Result<std::unique_ptr<Stream>> FaultyDevice::make_stream() {
  if (auto failed = faults_->call(CallKind::stream); !failed) return tl::unexpected(failed.error());
  auto stream = device_.make_stream();
  if (!stream) return stream;
  return std::make_unique<FaultyStream>(std::move(*stream), faults_, live_);
}

core::Result<std::unique_ptr<Event>> FaultyDevice::make_event() {
  if (auto failed = faults_->call(CallKind::event); !failed) return tl::unexpected(failed.error());
  auto event = device_.make_event();
  if (!event) return event;
  return std::make_unique<FaultyEvent>(std::move(*event), live_);
}

core::Result<std::vector<std::unique_ptr<ConvolutionPlan>>> FaultyDevice::plans(const Convolution& convolution,
                                                                                std::size_t workspace) {
  if (auto failed = faults_->call(CallKind::plan); !failed) return tl::unexpected(failed.error());
  return wrap(device_.plans(convolution, workspace), live_);
}

core::Result<std::vector<std::unique_ptr<MatrixPlan>>> FaultyDevice::plans(const MatrixProduct& product,
                                                                           std::size_t workspace) {
  if (auto failed = faults_->call(CallKind::plan); !failed) return tl::unexpected(failed.error());
  return wrap(device_.plans(product, workspace), live_);
}

core::Result<std::unique_ptr<ConvolutionPlan>> FaultyDevice::plan(const Convolution& convolution, std::size_t workspace,
                                                                  const std::string& engine) {
  if (auto failed = faults_->call(CallKind::plan); !failed) return tl::unexpected(failed.error());
  return wrap(device_.plan(convolution, workspace, engine), live_);
}

core::Result<std::unique_ptr<MatrixPlan>> FaultyDevice::plan(const MatrixProduct& product, std::size_t workspace,
                                                             const std::string& engine) {
  if (auto failed = faults_->call(CallKind::plan); !failed) return tl::unexpected(failed.error());
  return wrap(device_.plan(product, workspace, engine), live_);
}

core::Result<double> FaultyDevice::seconds_between(const Event& first, const Event& second) {
  if (auto failed = faults_->call(CallKind::timing); !failed) return tl::unexpected(failed.error());
  return device_.seconds_between(*static_cast<const FaultyEvent&>(first).inner,
                                 *static_cast<const FaultyEvent&>(second).inner);
}

}  // namespace troupe::gpu
