/// A device that executes nothing: what it costs to tell a device what to do, and choices by a clock that a test sets. Memory and plans are
/// HostDevice's. For tests.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu/device/host_device.hpp"

namespace troupe::gpu::testing {

class IdleDevice : public Device {
 public:
  [[nodiscard]] const DeviceInfo& info() const noexcept override { return host_.info(); }
  [[nodiscard]] core::Allocator& memory() noexcept override { return host_.memory(); }
  [[nodiscard]] core::Allocator& pinned() noexcept override { return host_.pinned(); }
  core::Result<bool> reach(Device& /*peer*/) override { return false; }
  core::Result<std::shared_ptr<core::DeviceSharing>> sharing() override {
    return core::fail(core::Errc::config, "this device shares no memory");
  }
  core::Result<std::unique_ptr<Stream>> make_stream() override { return std::make_unique<IdleStream>(*this); }
  core::Result<std::unique_ptr<Event>> make_event() override { return std::make_unique<IdleEvent>(); }
  core::Result<std::vector<std::unique_ptr<ConvolutionPlan>>> plans(const Convolution& c, std::size_t w) override {
    return host_.plans(c, w);
  }
  core::Result<std::vector<std::unique_ptr<MatrixPlan>>> plans(const MatrixProduct& p, std::size_t w) override {
    return host_.plans(p, w);
  }
  core::Result<std::unique_ptr<ConvolutionPlan>> plan(const Convolution& c, std::size_t w,
                                                      const std::string& engine) override {
    return host_.plan(c, w, engine);
  }
  core::Result<std::unique_ptr<MatrixPlan>> plan(const MatrixProduct& p, std::size_t w,
                                                 const std::string& engine) override {
    return host_.plan(p, w, engine);
  }
  [[nodiscard]] bool is_measurable() const noexcept override { return true; }
  [[nodiscard]] bool has_exact_engines() const noexcept override { return true; }
  core::Result<double> seconds_between(const Event& first, const Event& second) override {
    return static_cast<const IdleEvent&>(second).at - static_cast<const IdleEvent&>(first).at;
  }
  [[nodiscard]] std::size_t live_bytes() const { return host_.live_bytes(); }

  std::function<core::Result<void>(const std::string& engine)> on_run;  // empty: nothing happens
  std::function<void()> on_copy;                                        // from or to the host; empty: nothing happens
  std::function<void(void* pinned, std::size_t bytes)> on_fetch;        // empty: nothing comes
  std::function<void(const char* name)> on_range;                       // null: its end
  double now = 0;                                                       // seconds
  int operations = 0;                                                   // that streams were told
  std::string uncapturable;                                             // engine that a capture refuses

 private:
  struct IdleEvent final : Event {
    double at = 0;
  };
  struct IdleGraph final : StepGraph {
    std::vector<std::string> engines;  // that its launch runs
  };
  class IdleStream final : public Stream {
   public:
    explicit IdleStream(IdleDevice& device) : device_(device) {}
    core::Result<void> copy_to_device(void*, const void*, std::size_t) override { return told_to_copy(); }
    core::Result<void> copy_to_host(void* pinned, const void*, std::size_t bytes) override {
      if (device_.on_fetch) device_.on_fetch(pinned, bytes);
      return told_to_copy();
    }
    core::Result<void> copy(void*, const void*, std::size_t) override { return told(); }
    core::Result<void> zero(void*, std::size_t) override { return told(); }
    core::Result<void> launch(const Kernel&) override { return told(); }
    core::Result<void> run(const ConvolutionPlan& plan, const ConvolutionOperands&, void*) override {
      return told_to_run(plan);
    }
    core::Result<void> run(const MatrixPlan& plan, const MatrixOperands&, void*) override { return told_to_run(plan); }
    core::Result<void> record(Event& event) override {
      static_cast<IdleEvent&>(event).at = device_.now;
      return told();
    }
    core::Result<void> wait(Event&) override { return told(); }
    [[nodiscard]] void* native() noexcept override { return nullptr; }
    core::Result<void> synchronize() override { return told(); }
    core::Result<void> begin_capture() override {
      capture_ = std::make_unique<IdleGraph>();
      return told();
    }
    core::Result<std::unique_ptr<StepGraph>> end_capture() override { return std::move(capture_); }
    core::Result<void> launch(const StepGraph& graph) override {
      if (device_.on_run)
        for (const std::string& engine : static_cast<const IdleGraph&>(graph).engines)
          if (auto ran = device_.on_run(engine); !ran) return ran;
      return told();
    }
    void push_range(const char* name) noexcept override {
      if (device_.on_range) device_.on_range(name);
    }
    void pop_range() noexcept override {
      if (device_.on_range) device_.on_range(nullptr);
    }

   private:
    core::Result<void> told() {
      ++device_.operations;
      return {};
    }
    core::Result<void> told_to_copy() {
      if (device_.on_copy) device_.on_copy();
      return told();
    }
    template <class Plan>
    core::Result<void> told_to_run(const Plan& plan) {
      if (capture_) {
        if (plan.engine() == device_.uncapturable) return core::fail(core::Errc::io, "an engine that waits");
        capture_->engines.push_back(plan.engine());
        return told();
      }
      if (device_.on_run) return device_.on_run(plan.engine());
      return told();
    }
    IdleDevice& device_;
    std::unique_ptr<IdleGraph> capture_;  // while one is under way
  };

  HostDevice host_;
};

}  // namespace troupe::gpu::testing
