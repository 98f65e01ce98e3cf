/// Streams, events, plans and captured steps of HostDevice. Made by it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpu/device/host_device.hpp"

namespace troupe::gpu::host {

class HostEvent final : public Event {
 public:
  std::shared_ptr<EventState> state = std::make_shared<EventState>();
};

/// Plan is ConvolutionPlan or MatrixPlan.
template <class Plan, class Description>
class HostPlan final : public Plan {
 public:
  HostPlan(const Description& description, bool staged) : description_(description), staged_(staged) {}
  [[nodiscard]] std::size_t workspace() const noexcept override { return staged_ ? kHostWorkspace : 0; }
  [[nodiscard]] std::string engine() const override { return staged_ ? "host staged" : "host direct"; }
  [[nodiscard]] const Description& description() const noexcept { return description_; }

 private:
  Description description_;
  bool staged_;
};
using HostConvolutionPlan = HostPlan<ConvolutionPlan, Convolution>;
using HostMatrixPlan = HostPlan<MatrixPlan, MatrixProduct>;

class HostGraph final : public StepGraph {
 public:
  explicit HostGraph(std::vector<HostQueue::Work> work) : work_(std::move(work)) {}
  [[nodiscard]] const std::vector<HostQueue::Work>& work() const noexcept { return work_; }

 private:
  std::vector<HostQueue::Work> work_;
};

class HostStream final : public Stream {
 public:
  explicit HostStream(HostDevice& device) : device_(device), id_(device.queue().add_stream()) {}
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;
  ~HostStream() override;

  core::Result<void> copy_to_device(void* device, const void* pinned, std::size_t bytes) override;
  core::Result<void> copy_to_host(void* pinned, const void* device, std::size_t bytes) override;
  core::Result<void> copy(void* to, const void* from, std::size_t bytes) override;
  core::Result<void> zero(void* device, std::size_t bytes) override;
  core::Result<void> launch(const Kernel& kernel) override;
  core::Result<void> run(const ConvolutionPlan& plan, const ConvolutionOperands& operands, void* workspace) override;
  core::Result<void> run(const MatrixPlan& plan, const MatrixOperands& operands, void* workspace) override;
  core::Result<void> record(Event& event) override;
  core::Result<void> wait(Event& event) override;
  core::Result<void> synchronize() override;
  core::Result<void> begin_capture() override;
  [[nodiscard]] core::Result<std::unique_ptr<StepGraph>> end_capture() override;
  core::Result<void> launch(const StepGraph& graph) override;
  [[nodiscard]] void* native() noexcept override { return nullptr; }
  void push_range(const char* /*name*/) noexcept override {}
  void pop_range() noexcept override {}

 private:
  struct Operand {
    const char* name;
    const void* memory;
    std::size_t bytes;  // 0: not used
  };
  void add(HostQueue::Work work);
  [[nodiscard]] core::Result<void> check_device(const char* operation, const Operand& operand) const;
  [[nodiscard]] core::Result<void> check_pinned(const char* operation, const Operand& operand) const;
  [[nodiscard]] core::Result<void> check_operands(const std::string& operation, const std::vector<Operand>& operands,
                                                  void* workspace, std::size_t workspace_bytes) const;
  [[nodiscard]] core::Result<void> outside_capture(const char* operation) const;

  HostDevice& device_;
  HostQueue::StreamId id_;
  bool capturing_ = false;
  std::vector<HostQueue::Work> captured_;
};

}  // namespace troupe::gpu::host
