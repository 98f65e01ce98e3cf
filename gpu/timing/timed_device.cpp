#include "gpu/timing/timed_device.hpp"

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

namespace troupe::gpu {

/// One operation, with the events before and behind it.
struct TimedOperation {
  std::unique_ptr<Event> begin;
  std::unique_ptr<Event> end;
  bool is_copy = false;
};

class TimedDevice::Record {
 public:
  void start(std::vector<std::unique_ptr<Event>> events) {
    const std::lock_guard lock(mutex_);
    operations_.clear();
    events_ = std::move(events);
    is_on_ = true;
  }
  [[nodiscard]] std::deque<TimedOperation> stop() {
    const std::lock_guard lock(mutex_);
    is_on_ = false;
    events_.clear();
    return std::exchange(operations_, {});
  }
  /// The place of one more operation; null: nothing is measured. Places stay until stop().
  [[nodiscard]] TimedOperation* add(bool is_copy) {
    const std::lock_guard lock(mutex_);
    if (!is_on_) return nullptr;
    operations_.push_back({nullptr, nullptr, is_copy});
    return &operations_.back();
  }
  /// One that start() was given; null: none is left.
  [[nodiscard]] std::unique_ptr<Event> event() {
    const std::lock_guard lock(mutex_);
    if (events_.empty()) return nullptr;
    auto event = std::move(events_.back());
    events_.pop_back();
    return event;
  }

 private:
  std::mutex mutex_;
  std::deque<TimedOperation> operations_;
  std::vector<std::unique_ptr<Event>> events_;
  bool is_on_ = false;
};

namespace {

class TimedStream final : public Stream {
 public:
  TimedStream(Device& device, std::unique_ptr<Stream> inner, std::shared_ptr<TimedDevice::Record> record)
      : device_(device), inner_(std::move(inner)), record_(std::move(record)) {}

  core::Result<void> copy_to_device(void* device, const void* pinned, std::size_t bytes) override {
    return timed(true, [&] { return inner_->copy_to_device(device, pinned, bytes); });
  }
  core::Result<void> copy_to_host(void* pinned, const void* device, std::size_t bytes) override {
    return timed(true, [&] { return inner_->copy_to_host(pinned, device, bytes); });
  }
  core::Result<void> copy(void* to, const void* from, std::size_t bytes) override {
    return timed(false, [&] { return inner_->copy(to, from, bytes); });
  }
  core::Result<void> zero(void* device, std::size_t bytes) override {
    return timed(false, [&] { return inner_->zero(device, bytes); });
  }
  core::Result<void> launch(const Kernel& kernel) override {
    return timed(false, [&] { return inner_->launch(kernel); });
  }
  core::Result<void> run(const ConvolutionPlan& plan, const ConvolutionOperands& operands, void* workspace) override {
    return timed(false, [&] { return inner_->run(plan, operands, workspace); });
  }
  core::Result<void> run(const MatrixPlan& plan, const MatrixOperands& operands, void* workspace) override {
    return timed(false, [&] { return inner_->run(plan, operands, workspace); });
  }
  core::Result<void> record(Event& event) override { return inner_->record(event); }
  core::Result<void> wait(Event& event) override { return inner_->wait(event); }
  core::Result<void> synchronize() override { return inner_->synchronize(); }
  core::Result<void> begin_capture() override {
    captures_ = true;
    return inner_->begin_capture();
  }
  core::Result<std::unique_ptr<StepGraph>> end_capture() override {
    captures_ = false;
    return inner_->end_capture();
  }
  core::Result<void> launch(const StepGraph& graph) override {
    return timed(false, [&] { return inner_->launch(graph); });
  }
  [[nodiscard]] void* native() noexcept override { return inner_->native(); }
  void push_range(const char* name) noexcept override { inner_->push_range(name); }
  void pop_range() noexcept override { inner_->pop_range(); }

 private:
  template <class Call>
  core::Result<void> timed(bool is_copy, const Call& call) {
    TimedOperation* const operation = captures_ ? nullptr : record_->add(is_copy);
    if (!operation) return call();
    if (auto marked = mark(operation->begin); !marked) return marked;
    if (auto called = call(); !called) return called;
    return mark(operation->end);
  }
  core::Result<void> mark(std::unique_ptr<Event>& place) {
    place = record_->event();
    if (!place) {
      auto event = device_.make_event();
      if (!event) return tl::unexpected(std::move(event.error()));
      place = std::move(*event);
    }
    return inner_->record(*place);
  }

  Device& device_;
  std::unique_ptr<Stream> inner_;
  std::shared_ptr<TimedDevice::Record> record_;
  bool captures_ = false;
};

/// When something begins (+1) or ends (−1), in seconds since the first event.
struct Change {
  double at = 0;
  int all = 0;
  int work = 0;  // what is no copy from or to the host
};

}  // namespace

TimedDevice::TimedDevice(std::shared_ptr<Device> device)
    : device_(std::move(device)), record_(std::make_shared<Record>()) {}

TimedDevice::~TimedDevice() = default;

core::Result<void> TimedDevice::start(int operations) {
  std::vector<std::unique_ptr<Event>> events;
  for (int i = 0; i < 2 * operations; ++i) {
    auto event = device_->make_event();
    if (!event) return tl::unexpected(std::move(event.error()));
    events.push_back(std::move(*event));
  }
  record_->start(std::move(events));
  return {};
}

core::Result<std::unique_ptr<Stream>> TimedDevice::make_stream() {
  auto stream = device_->make_stream();
  if (!stream) return stream;
  return std::make_unique<TimedStream>(*device_, std::move(*stream), record_);
}

core::Result<DeviceTimes> TimedDevice::stop() {
  const auto operations = record_->stop();
  DeviceTimes times;
  std::vector<Change> changes;
  for (const auto& operation : operations) {
    if (!operation.begin || !operation.end) continue;  // the call failed
    const auto begin = device_->seconds_between(*operations.front().begin, *operation.begin);
    if (!begin) return tl::unexpected(begin.error());
    const auto length = device_->seconds_between(*operation.begin, *operation.end);
    if (!length) return tl::unexpected(length.error());
    const int work = operation.is_copy ? 0 : 1;
    changes.push_back({*begin, 1, work});
    changes.push_back({*begin + *length, -1, -work});
    ++times.operations;
  }
  // What ends and what begins at one moment are neighbours in any order: nothing lies between them.
  std::ranges::stable_sort(changes, {}, &Change::at);
  int all = 0;
  int work = 0;
  for (std::size_t i = 0; i + 1 < changes.size(); ++i) {
    all += changes[i].all;
    work += changes[i].work;
    const double length = changes[i + 1].at - changes[i].at;
    times.span += length;
    if (all == 0) times.idle += length;
    if (all > 0 && work == 0) times.copy += length;
  }
  return times;
}

}  // namespace troupe::gpu
