/// Mapped memory of the shm endpoint. Arenas are memory files; a peer requests the descriptor from the owner's listening socket.
/// Internal to shm. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/buffer.hpp"
#include "core/error.hpp"
#include "transport/mapped_memory.hpp"
#include "transport/shm/memory/memory_file.hpp"
#include "transport/shm/protocol/address.hpp"

namespace troupe::transport {

class ShmArenas final : public MappedMemory, private core::Allocator {
 public:
  explicit ShmArenas(ShmAddress owner);

  [[nodiscard]] core::Allocator& allocator() noexcept override { return *this; }
  [[nodiscard]] core::Result<Exposure> expose(std::shared_ptr<core::Buffer> arena) override;
  /// Waits for the owner's thread, at most 5 s (as long as a silent peer counts as alive). Then Errc::timeout.
  [[nodiscard]] core::Result<Mapping> attach(const ArenaKey& key, std::size_t floats) override;

  /// Answers a peer's attach request on `socket`.
  void serve(int socket, std::uint64_t number) noexcept;
  /// Withdraws all offers and refuses new ones.
  void close() noexcept;

 private:
  [[nodiscard]] core::MemorySpace space() const noexcept override { return core::MemorySpace::host_shared; }
  [[nodiscard]] core::Result<void*> allocate(std::size_t bytes) override;
  void deallocate(void* memory, std::size_t bytes) noexcept override;

  /// Shared with the exposures, which may outlive this object.
  struct Offers {
    std::mutex mutex;
    bool closed = false;
    std::map<std::uint64_t, std::shared_ptr<core::Buffer>> arenas;
  };

  const ShmAddress owner_;
  std::mutex mutex_;
  std::unordered_map<void*, ShmMemoryFile> files_;  // by address of the mapping
  std::uint64_t next_number_ = 0;
  const std::shared_ptr<Offers> offers_ = std::make_shared<Offers>();  // after files_: its arenas end first
};

}  // namespace troupe::transport
