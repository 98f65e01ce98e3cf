#include "fake_device.hpp"

#include <cstring>
#include <utility>

#include "transport/common/wire_hash.hpp"

namespace troupe::transport::testing {
namespace {

constexpr std::uintptr_t kFar = std::uintptr_t{1} << 62;

template <class Byte>
Byte* other_side(Byte* address) noexcept {
  return reinterpret_cast<Byte*>(reinterpret_cast<std::uintptr_t>(address) ^ kFar);
}

}  // namespace

MemoryView on_device(MemoryView host) noexcept { return {other_side(host.data), host.size, core::MemorySpace::device}; }
ConstMemoryView on_device(ConstMemoryView host) noexcept {
  return {other_side(host.data), host.size, core::MemorySpace::device};
}

FakeDevice::FakeDevice() : thread_([this] { run(); }) {}

FakeDevice::~FakeDevice() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    held_ = false;
  }
  changed_.notify_all();
  thread_.join();
}

void FakeDevice::to_host(std::byte* host, const std::byte* device, std::size_t bytes, Done done) {
  add({host, other_side(device), bytes, std::move(done)});
}

void FakeDevice::to_device(std::byte* device, const std::byte* host, std::size_t bytes, Done done) {
  add({other_side(device), host, bytes, std::move(done)});
}

void FakeDevice::add(Copy copy) {
  ++count_;
  const std::lock_guard lock(mutex_);
  copies_.push_back(std::move(copy));
  changed_.notify_all();
}

void FakeDevice::hold() {
  const std::lock_guard lock(mutex_);
  held_ = true;
}

void FakeDevice::release() {
  const std::lock_guard lock(mutex_);
  held_ = false;
  changed_.notify_all();
}

void FakeDevice::fail(core::Error error) {
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
}

void FakeDevice::run() {
  std::unique_lock lock(mutex_);
  for (unsigned count = 0;; ++count) {
    changed_.wait(lock, [this] { return (stop_ || !copies_.empty()) && !held_; });
    if (copies_.empty()) return;
    const Copy copy = std::move(copies_.front());
    copies_.pop_front();
    const auto error = error_;
    lock.unlock();
    if (count % 5 == 0) std::this_thread::yield();  // varies the delay
    if (error) {
      copy.done(tl::unexpected(*error));
    } else {
      std::memcpy(copy.to, copy.from, copy.bytes);
      copy.done({});
    }
    lock.lock();
  }
}

FakeChecksum::FakeChecksum() : thread_([this] { run(); }) {}

FakeChecksum::~FakeChecksum() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    held_ = false;
  }
  changed_.notify_all();
  thread_.join();
}

void FakeChecksum::sum(const std::byte* device, std::size_t bytes, Done done) {
  const std::lock_guard lock(mutex_);
  sums_.push_back({device, bytes, std::move(done)});
  ++begun_;
  changed_.notify_all();
}

void FakeChecksum::hold() {
  const std::lock_guard lock(mutex_);
  held_ = true;
}

void FakeChecksum::release() {
  const std::lock_guard lock(mutex_);
  held_ = false;
  changed_.notify_all();
}

void FakeChecksum::fail(core::Error error) {
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
}

void FakeChecksum::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return (stop_ || !sums_.empty()) && !held_; });
    if (sums_.empty()) return;
    const Sum sum = std::move(sums_.front());
    sums_.pop_front();
    const auto error = error_;
    lock.unlock();
    ++ended_;
    if (error)
      sum.done(tl::unexpected(*error));
    else
      sum.done(wire_hash({other_side(sum.data), sum.bytes}));
    lock.lock();
  }
}

}  // namespace troupe::transport::testing
