#include "transport/shm/memory/copy.hpp"

#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace troupe::transport {
namespace {

bool read_memory(pid_t process, std::uint64_t address, std::byte* to, std::size_t size) noexcept {
  for (std::size_t done = 0; done < size;) {
    const iovec local{to + done, size - done};
    const iovec remote{reinterpret_cast<void*>(address + done), size - done};
    const ssize_t count = ::process_vm_readv(process, &local, 1, &remote, 1, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace

bool copy_piece(const ShmPiece& piece) noexcept {
  if (piece.from == nullptr) return read_memory(piece.process, piece.address, piece.to, piece.size);
  std::memcpy(piece.to, piece.from, piece.size);
  return true;
}

bool can_read(pid_t process, const ShmIntroduction& introduction) noexcept {
  std::uint64_t value = 0;
  return process > 0 &&
         read_memory(process, introduction.probe_address, reinterpret_cast<std::byte*>(&value), sizeof value) &&
         value == introduction.probe_value;
}

}  // namespace troupe::transport
