#include "gpu/cuda/memory.hpp"

#include <cstring>

#include <fmt/format.h>

namespace troupe::gpu {
namespace {

constexpr std::size_t kMostPinnedKept = std::size_t{64} << 20;

/// Blocks of `allocate`, a call of the runtime named `what`, and of `free`.
template <class Allocate, class Free>
BlockCache::Source blocks_of(const std::shared_ptr<CudaContext>& context, const char* what, const Allocate& allocate,
                             const Free& free) {
  BlockCache::Source source;
  source.allocate = [=](std::size_t bytes) -> core::Result<void*> {
    void* memory = nullptr;
    const auto allocated = context->check(allocate(&memory, bytes), what);
    if (allocated) return memory;
    if (allocated.error().code == core::Errc::out_of_memory) return nullptr;
    return tl::unexpected(allocated.error());
  };
  source.free = [=](void* memory) {
    context->enter_quietly();
    (void)free(memory);
  };
  source.available = [] { return std::size_t{0}; };  // of host memory nobody knows
  return source;
}

BlockCache::Source device_blocks(const std::shared_ptr<CudaContext>& context) {
  auto source = blocks_of(
      context, "cudaMalloc", [](void** memory, std::size_t bytes) { return cudaMalloc(memory, bytes); },
      [](void* memory) { return cudaFree(memory); });
  source.available = [context]() -> std::size_t {
    std::size_t free = 0, all = 0;
    return context->check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo") ? free : 0;
  };
  return source;
}

BlockCache::Source pinned_blocks(const std::shared_ptr<CudaContext>& context) {
  return blocks_of(
      context, "cudaHostAlloc",
      [](void** memory, std::size_t bytes) { return cudaHostAlloc(memory, bytes, cudaHostAllocPortable); },
      [](void* memory) { return cudaFreeHost(memory); });
}

}  // namespace

CudaMemory::CudaMemory(std::shared_ptr<CudaContext> context, std::size_t most_kept)
    : context_(std::move(context)), blocks_(device_blocks(context_), most_kept) {}

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
    : context_(std::move(context)), blocks_(pinned_blocks(context_), kMostPinnedKept) {}

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
