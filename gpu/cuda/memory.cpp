#include "gpu/cuda/memory.hpp"

#include <cstring>

#include <fmt/format.h>

namespace troupe::gpu {
namespace {

/// Bytes of all kept blocks. What comes and goes while a run steps is small; what measurements and replicas leave other processes may need.
constexpr std::size_t kMostKept = std::size_t{256} << 20;
constexpr std::size_t kMostPinnedKept = std::size_t{64} << 20;

BlockCache::Source source_of(const std::shared_ptr<CudaContext>& context) {
  BlockCache::Source source;
  source.allocate = [context](std::size_t bytes) -> core::Result<void*> {
    void* memory = nullptr;
    const auto allocated = context->check(cudaMalloc(&memory, bytes), "cudaMalloc");
    if (allocated) return memory;
    if (allocated.error().code == core::Errc::out_of_memory) return nullptr;
    return tl::unexpected(allocated.error());
  };
  source.free = [context](void* memory) {
    context->enter_quietly();
    (void)cudaFree(memory);
  };
  source.available = [context]() -> std::size_t {
    std::size_t free = 0, all = 0;
    return context->check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo") ? free : 0;
  };
  return source;
}

BlockCache::Source pinned_source_of(const std::shared_ptr<CudaContext>& context) {
  BlockCache::Source source;
  source.allocate = [context](std::size_t bytes) -> core::Result<void*> {
    void* memory = nullptr;
    const auto allocated = context->check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), "cudaHostAlloc");
    if (allocated) return memory;
    if (allocated.error().code == core::Errc::out_of_memory) return nullptr;
    return tl::unexpected(allocated.error());
  };
  source.free = [context](void* memory) {
    context->enter_quietly();
    (void)cudaFreeHost(memory);
  };
  source.available = [] { return std::size_t{0}; };  // nobody knows
  return source;
}

}  // namespace

CudaMemory::CudaMemory(std::shared_ptr<CudaContext> context)
    : context_(std::move(context)), blocks_(source_of(context_), kMostKept) {}

CudaMemory::~CudaMemory() {
  context_->enter_quietly();
  if (stream_) (void)cudaStreamDestroy(stream_);
}

core::Result<void*> CudaMemory::allocate(std::size_t bytes) {
  if (auto entered = context_->enter(); !entered) return tl::unexpected(entered.error());
  auto memory = blocks_.take(bytes);
  if (!memory) return memory;
  if (auto zeroed = zero(*memory, bytes); !zeroed) {
    blocks_.release(*memory);
    return tl::unexpected(zeroed.error());
  }
  return memory;
}

void CudaMemory::deallocate(void* memory, std::size_t /*bytes*/) noexcept { blocks_.release(memory); }

core::Result<void> CudaMemory::zero(void* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!stream_) {
    auto made =
        context_->check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    if (!made) return made;
  }
  if (auto begun = context_->check(cudaMemsetAsync(memory, 0, bytes, stream_), "cudaMemsetAsync"); !begun) return begun;
  return context_->check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

CudaPinned::CudaPinned(std::shared_ptr<CudaContext> context)
    : context_(std::move(context)), blocks_(pinned_source_of(context_), kMostPinnedKept) {}

core::Result<void*> CudaPinned::allocate(std::size_t bytes) {
  if (auto entered = context_->enter(); !entered) return tl::unexpected(entered.error());
  auto memory = blocks_.take(bytes);
  if (memory)
    std::memset(*memory, 0, bytes);
  else if (memory.error().code == core::Errc::out_of_memory)
    memory.error().message = fmt::format("CUDA cannot lock {} bytes of host memory", bytes);
  return memory;
}

void CudaPinned::deallocate(void* memory, std::size_t /*bytes*/) noexcept { blocks_.release(memory); }

}  // namespace troupe::gpu
