#include "gpu/thread_streams.hpp"

#include <utility>

namespace troupe::gpu {

core::Result<std::shared_ptr<Stream>> ThreadStreams::mine() {
  const std::lock_guard lock(mutex_);
  auto& known = streams_[std::this_thread::get_id()];
  if (known) return known;
  auto made = device_.make_stream();
  if (!made) return tl::unexpected(std::move(made.error()));
  known = std::move(*made);
  return known;
}

std::shared_ptr<Stream> ThreadStreams::exchange(std::shared_ptr<Stream> stream) {
  const std::lock_guard lock(mutex_);
  return std::exchange(streams_.at(std::this_thread::get_id()), std::move(stream));
}

ThreadStreams::Instead::Instead(ThreadStreams& streams, std::shared_ptr<Stream> stream)
    : streams_(streams), own_(streams.exchange(std::move(stream))) {}

ThreadStreams::Instead::~Instead() { (void)streams_.exchange(std::move(own_)); }

}  // namespace troupe::gpu
