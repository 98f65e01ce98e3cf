#include "gpu/thread_streams.hpp"

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

}  // namespace troupe::gpu
