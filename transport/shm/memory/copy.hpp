/// Moving payload bytes, without a lock and in pieces, so that no copy keeps others waiting for long. Internal to shm.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "transport/shm/protocol/frame.hpp"
#include "transport/shm/memory/memory_file.hpp"

namespace troupe::transport {

/// At 10 GB/s a tenth of a millisecond: how long frames and close() may wait for a copy.
inline constexpr std::size_t kShmPieceBytes = std::size_t{1} << 20;

/// The window of shared memory through which payloads go where processes cannot read each other. Slots stay in the
/// caches between being written and being read.
inline constexpr std::size_t kShmSlots = 8;
inline constexpr std::size_t kShmSlotBytes = std::size_t{256} << 10;
inline constexpr std::size_t kShmWindowBytes = kShmSlots * kShmSlotBytes;

/// One side's view of a window. `taken`: bit i while slot i is with the receiver.
struct ShmWindow {
  ShmMapping memory;
  std::uint32_t taken = 0;
  [[nodiscard]] bool full() const noexcept { return taken == (1u << kShmSlots) - 1; }
  [[nodiscard]] std::byte* slot(std::size_t i) const noexcept { return memory.data() + i * kShmSlotBytes; }
};

struct ShmPiece {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;  // null: another process's memory
  pid_t process = 0;
  std::uint64_t address = 0;  // in that process
  std::size_t size = 0;
};

/// False when the other process's memory cannot be read (any more).
[[nodiscard]] bool copy_piece(const ShmPiece& piece) noexcept;

/// Whether the kernel lets us read `process`: what stands at its introduction's probe_address is probe_value.
[[nodiscard]] bool can_read(pid_t process, const ShmIntroduction& introduction) noexcept;

}  // namespace troupe::transport
