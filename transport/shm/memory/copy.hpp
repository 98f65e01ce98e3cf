/// Copies payload bytes, without a lock and in pieces, so that no copy blocks other work for long. Internal to shm. Thread rule:
/// any thread, while the owner of the memory keeps it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "transport/shm/memory/memory_file.hpp"
#include "transport/shm/protocol/frame.hpp"

namespace troupe::transport {

/// 0.1 ms at 10 GB/s: the time that frames and close() may wait for a copy.
inline constexpr std::size_t kShmPieceBytes = std::size_t{1} << 20;

/// The window of shared memory for payloads between processes that cannot read each other. It is small, so a slot stays in the CPU
/// caches from its write to its read.
inline constexpr std::size_t kShmSlots = 8;
inline constexpr std::size_t kShmSlotBytes = std::size_t{256} << 10;
inline constexpr std::size_t kShmWindowBytes = kShmSlots * kShmSlotBytes;

/// One side's view of a window. `taken`: bit i is set while the receiver has slot i.
struct ShmWindow {
  ShmMapping memory;
  std::uint32_t taken = 0;
  [[nodiscard]] bool full() const noexcept { return taken == (1u << kShmSlots) - 1; }
  [[nodiscard]] std::byte* slot(std::size_t i) const noexcept { return memory.data() + i * kShmSlotBytes; }
};

struct ShmPiece {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;  // null: read `address` in `process`
  pid_t process = 0;
  std::uint64_t address = 0;  // in that process
  std::size_t size = 0;
};

/// False: the other process's memory cannot be read (any more).
[[nodiscard]] bool copy_piece(const ShmPiece& piece) noexcept;

/// Whether the kernel lets this process read `process`: probe_address in the introduction must hold probe_value.
[[nodiscard]] bool can_read(pid_t process, const ShmIntroduction& introduction) noexcept;

}  // namespace troupe::transport
