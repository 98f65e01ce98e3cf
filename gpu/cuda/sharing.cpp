#include "gpu/cuda/sharing.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <sstream>

#include <fmt/format.h>

namespace troupe::gpu {
namespace {

/// The driver cuts smaller allocations out of common blocks, of which a handle would share the whole.
constexpr std::size_t kSmallest = std::size_t{2} << 20;

constexpr auto kKind = "cuda";

/// Of this process: CUDA does not open a handle in the process that has made it.
std::uint64_t own_number() {
  static const std::uint64_t number = [] {
    std::random_device random;
    return (std::uint64_t{random()} << 32) | random();
  }();
  return number;
}

/// "cuda PROCESS ADDRESS HANDLE", hexadecimal.
struct Handle {
  std::uint64_t process = 0;
  std::uint64_t address = 0;
  cudaIpcMemHandle_t memory{};

  [[nodiscard]] std::string text() const {
    std::array<unsigned char, sizeof memory> bytes{};
    std::memcpy(bytes.data(), &memory, sizeof memory);
    auto text = fmt::format("{} {:x} {:x} ", kKind, process, address);
    for (const auto byte : bytes) text += fmt::format("{:02x}", byte);
    return text;
  }
  [[nodiscard]] static bool parse(const std::string& text, Handle& handle) {
    std::istringstream in(text);
    std::string kind, memory;
    in >> kind >> std::hex >> handle.process >> handle.address >> memory;
    if (!in || kind != kKind || memory.size() != 2 * sizeof handle.memory ||
        memory.find_first_not_of("0123456789abcdef") != std::string::npos)
      return false;
    std::array<unsigned char, sizeof handle.memory> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<unsigned char>(std::stoi(memory.substr(2 * i, 2), nullptr, 16));
    std::memcpy(&handle.memory, bytes.data(), sizeof handle.memory);
    return true;
  }
};

tl::unexpected<core::Error> cannot_map(const std::string& why) {
  return core::fail(core::Errc::config, fmt::format("device memory of another process cannot be mapped: {}", why));
}

}  // namespace

/// The memory, and which of this process's addresses are such.
class CudaSharing::Blocks final : public core::Allocator, public std::enable_shared_from_this<Blocks> {
 public:
  explicit Blocks(std::shared_ptr<CudaContext> context) : memory_(std::move(context), BlockCache::kForEver) {}
  [[nodiscard]] core::MemorySpace space() const noexcept override { return core::MemorySpace::device; }
  [[nodiscard]] core::Result<void*> allocate(std::size_t bytes) override {
    return memory_.allocate(std::max(bytes, kSmallest));
  }
  void deallocate(void* memory, std::size_t bytes) noexcept override {
    memory_.deallocate(memory, std::max(bytes, kSmallest));
  }

  void offer(void* address) {
    const std::lock_guard lock(offers_mutex());
    offers().insert_or_assign(address, weak_from_this());
  }
  /// The owner of an address of this process; null: it has ended.
  [[nodiscard]] static std::shared_ptr<Blocks> owner_of(void* address) {
    const std::lock_guard lock(offers_mutex());
    const auto found = offers().find(address);
    return found == offers().end() ? nullptr : found->second.lock();
  }

 private:
  static std::mutex& offers_mutex() {
    static std::mutex mutex;
    return mutex;
  }
  static std::map<void*, std::weak_ptr<Blocks>>& offers() {
    static std::map<void*, std::weak_ptr<Blocks>> all;
    return all;
  }
  CudaMemory memory_;
};

CudaSharing::CudaSharing(std::shared_ptr<CudaContext> context)
    : context_(std::move(context)), blocks_(std::make_shared<Blocks>(context_)) {}

CudaSharing::~CudaSharing() = default;

core::Allocator& CudaSharing::memory() noexcept { return *blocks_; }

core::Result<std::string> CudaSharing::handle_of(void* allocation) {
  if (auto entered = context_->enter(); !entered) return tl::unexpected(entered.error());
  Handle handle{.process = own_number(), .address = reinterpret_cast<std::uint64_t>(allocation)};
  if (auto got = context_->check(cudaIpcGetMemHandle(&handle.memory, allocation), "cudaIpcGetMemHandle"); !got)
    return tl::unexpected(got.error());
  blocks_->offer(allocation);
  return handle.text();
}

core::Result<std::shared_ptr<void>> CudaSharing::open(const std::string& text, std::size_t /*bytes*/) {
  Handle handle;
  if (!Handle::parse(text, handle)) return cannot_map("it is no handle of CUDA's");
  if (handle.process == own_number()) return open_here(reinterpret_cast<void*>(handle.address));
  if (auto entered = context_->enter(); !entered) return tl::unexpected(entered.error());
  void* memory = nullptr;
  const cudaError_t status = cudaIpcOpenMemHandle(&memory, handle.memory, cudaIpcMemLazyEnablePeerAccess);
  if (status != cudaSuccess) {
    (void)cudaGetLastError();
    if (is_lost(status)) return tl::unexpected(context_->check(status, "cudaIpcOpenMemHandle").error());
    return cannot_map(cudaGetErrorString(status));
  }
  return std::shared_ptr<void>(memory, [context = context_](void* mapped) {
    context->enter_quietly();
    (void)cudaIpcCloseMemHandle(mapped);
  });
}

/// Memory of a site of this process, perhaps on another device.
core::Result<std::shared_ptr<void>> CudaSharing::open_here(void* address) {
  auto owner = Blocks::owner_of(address);
  if (!owner) return cannot_map("its owner has ended");
  if (auto entered = context_->enter(); !entered) return tl::unexpected(entered.error());
  cudaPointerAttributes attributes{};
  if (auto asked = context_->check(cudaPointerGetAttributes(&attributes, address), "cudaPointerGetAttributes"); !asked)
    return tl::unexpected(asked.error());
  if (attributes.device != context_->ordinal()) {
    const cudaError_t status = cudaDeviceEnablePeerAccess(attributes.device, 0);
    if (status != cudaSuccess) (void)cudaGetLastError();
    if (status != cudaSuccess && status != cudaErrorPeerAccessAlreadyEnabled)
      return cannot_map(cudaGetErrorString(status));
  }
  return std::shared_ptr<void>(std::move(owner), address);
}

}  // namespace troupe::gpu
