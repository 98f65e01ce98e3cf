#include "gpu/stream_checksum.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "gpu/kernels/kernel.hpp"

namespace troupe::gpu {
namespace {

constexpr std::size_t kFloatsOfWord = sizeof(std::uint64_t) / sizeof(float);

std::uint64_t* words_of(core::Buffer& buffer) { return reinterpret_cast<std::uint64_t*>(buffer.data()); }

}  // namespace

StreamChecksum::StreamChecksum(std::shared_ptr<Device> device) : device_(std::move(device)) {}

StreamChecksum::~StreamChecksum() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

core::Result<void> StreamChecksum::prepare(std::size_t bytes) {
  return make_room(xxh3_scratch(static_cast<std::int64_t>(bytes)));
}

void StreamChecksum::sum(const std::byte* device, std::size_t bytes, Done done) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back({device, bytes, std::move(done)});
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_all();
}

core::Result<void> StreamChecksum::make_room(std::size_t words) {
  const auto make = [](core::Buffer& buffer, core::Allocator& memory, std::size_t floats) -> core::Result<void> {
    if (buffer.size() >= floats) return {};
    auto made = core::Buffer::allocate(memory, floats);
    if (!made) return tl::unexpected(std::move(made.error()));
    buffer = std::move(*made);
    return {};
  };
  if (!stream_) {
    auto made = device_->make_stream();
    if (!made) return tl::unexpected(std::move(made.error()));
    stream_ = std::move(*made);
  }
  if (auto made = make(results_, device_->memory(), kMost * kFloatsOfWord); !made) return made;
  if (auto made = make(pinned_, device_->pinned(), kMost * kFloatsOfWord); !made) return made;
  return make(scratch_, device_->memory(), words * kFloatsOfWord);  // nothing is under way that uses the old one
}

core::Result<void> StreamChecksum::begin(const std::deque<Sum>& sums) {
  std::size_t words = 0;
  for (const Sum& sum : sums) words = std::max(words, xxh3_scratch(static_cast<std::int64_t>(sum.bytes)));
  if (auto made = make_room(words); !made) return made;
  std::uint64_t* result = words_of(results_);
  for (const Sum& sum : sums) {
    const Xxh3 kernel{sum.data, words_of(scratch_), result++, static_cast<std::int64_t>(sum.bytes)};
    if (auto launched = stream_->launch(kernel); !launched) return launched;
  }
  return stream_->copy_to_host(pinned_.data(), results_.data(), sums.size() * sizeof(std::uint64_t));
}

/// Sums that came meanwhile begin together, and end together. After a failed call the stream is waited for too: it may read the memory.
void StreamChecksum::run() {
  for (;;) {
    std::deque<Sum> sums;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      for (; !waiting_.empty() && sums.size() < kMost; waiting_.pop_front())
        sums.push_back(std::move(waiting_.front()));
    }
    core::Result<void> result = begin(sums);
    const core::Result<void> waited = stream_ ? stream_->synchronize() : core::Result<void>();
    if (result) result = waited;
    std::array<std::uint64_t, kMost> found{};
    if (result) std::memcpy(found.data(), pinned_.data(), sums.size() * sizeof(std::uint64_t));
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (result)
        sums[i].done(found[i]);
      else
        sums[i].done(tl::unexpected(result.error()));
    }
  }
}

}  // namespace troupe::gpu
