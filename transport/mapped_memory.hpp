/// For endpoints whose peers can reach each other's memory (inproc, shm): an arena is exposed once by its owner and
/// attached by peers, which then read and write it in place. Who may touch which slice when is the exchange
/// algorithm's business; a message of zero bytes over the endpoint is its signal, and orders memory as any message
/// does.
///
/// Thread-safe. Lifetimes cannot dangle: a Mapping stays valid after the Exposure has ended and its owner is gone.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "core/buffer.hpp"
#include "core/error.hpp"
#include "core/kernels.hpp"

namespace troupe::transport {

/// Names an exposed arena; printable text that control messages carry.
struct ArenaKey {
  std::string text;
  bool operator==(const ArenaKey&) const = default;
};

/// An arena on offer. Its end withdraws the offer: nobody attaches any more; mappings already made stay valid.
class Exposure {
 public:
  Exposure(ArenaKey key, std::shared_ptr<void> offer) noexcept : key_(std::move(key)), offer_(std::move(offer)) {}
  [[nodiscard]] const ArenaKey& key() const noexcept { return key_; }

 private:
  ArenaKey key_;
  std::shared_ptr<void> offer_;  // its deleter withdraws
};

/// A peer's arena in this process's address space, until this object ends.
class Mapping {
 public:
  Mapping(core::Span floats, std::shared_ptr<void> keep) noexcept : floats_(floats), keep_(std::move(keep)) {}
  [[nodiscard]] core::Span view() const noexcept { return floats_; }

 private:
  core::Span floats_;
  std::shared_ptr<void> keep_;  // the memory, or the mapping of it
};

class MappedMemory {
 public:
  virtual ~MappedMemory() = default;
  /// Where arenas that are to be exposed must come from. Lives as long as the endpoint; free what it made before.
  [[nodiscard]] virtual core::Allocator& allocator() noexcept = 0;
  /// Offers `arena`, whole, to peers. The buffer is kept alive while exposed or attached, and must not be empty.
  [[nodiscard]] virtual core::Result<Exposure> expose(std::shared_ptr<core::Buffer> arena) = 0;
  /// Maps a peer's arena, which must hold `floats` floats: another length is Errc::corrupt. Errc::peer_lost when the
  /// offer was withdrawn or its owner is gone.
  [[nodiscard]] virtual core::Result<Mapping> attach(const ArenaKey& key, std::size_t floats) = 0;
};

}  // namespace troupe::transport
