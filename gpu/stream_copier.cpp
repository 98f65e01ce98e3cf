#include "gpu/stream_copier.hpp"

#include <utility>
#include <vector>

namespace troupe::gpu {

StreamCopier::StreamCopier(std::shared_ptr<Device> device)
    : device_(std::move(device)), to_host_(*device_, true), to_device_(*device_, false) {}

StreamCopier::~StreamCopier() = default;

void StreamCopier::to_host(std::byte* host, const std::byte* device, std::size_t bytes, Done done) {
  to_host_.add({host, device, bytes, std::move(done)});
}

void StreamCopier::to_device(std::byte* device, const std::byte* host, std::size_t bytes, Done done) {
  to_device_.add({device, host, bytes, std::move(done)});
}

StreamCopier::Lane::~Lane() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StreamCopier::Lane::add(Copy copy) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(copy));
  changed_.notify_all();
}

core::Result<void> StreamCopier::Lane::begin(const Copy& copy) {
  if (!stream_) {
    auto made = device_.make_stream();
    if (!made) return tl::unexpected(std::move(made.error()));
    stream_ = std::move(*made);
  }
  return to_host_ ? stream_->copy_to_host(copy.to, copy.from, copy.bytes)
                  : stream_->copy_to_device(copy.to, copy.from, copy.bytes);
}

/// Copies that came meanwhile begin together, and end together.
void StreamCopier::Lane::run() {
  for (;;) {
    std::deque<Copy> copies;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      copies.swap(waiting_);
    }
    std::vector<core::Result<void>> results;
    for (const Copy& copy : copies) results.push_back(begin(copy));
    const core::Result<void> waited = stream_ ? stream_->synchronize() : core::Result<void>();
    for (std::size_t i = 0; i < copies.size(); ++i) {
      core::Result<void> result = results[i] ? waited : results[i];
      if (!result) result.error().code = core::Errc::io;
      copies[i].done(std::move(result));
    }
  }
}

}  // namespace troupe::gpu
