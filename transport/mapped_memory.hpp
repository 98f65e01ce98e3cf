/// For endpoints whose peers can reach each other's memory (inproc, shm). The owner exposes an arena once; peers attach it and then
/// read and write it in place. The exchange algorithm decides which member touches which slice when. Its signal is a message of
/// zero bytes over the endpoint, which orders memory as any message does.
///
/// Thread-safe. Lifetimes cannot dangle: a Mapping stays valid after its Exposure has ended and its owner has exited.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "core/buffer.hpp"
#include "core/error.hpp"
#include "core/kernels.hpp"

namespace troupe::transport {

/// The name of an exposed arena: printable text that control messages carry.
struct ArenaKey {
  std::string text;
  bool operator==(const ArenaKey&) const = default;
};

/// An exposed arena. The destructor withdraws the offer: peers can no longer attach; existing mappings stay valid.
class Exposure {
 public:
  Exposure(ArenaKey key, std::shared_ptr<void> offer) noexcept : key_(std::move(key)), offer_(std::move(offer)) {}
  [[nodiscard]] const ArenaKey& key() const noexcept { return key_; }

 private:
  ArenaKey key_;
  std::shared_ptr<void> offer_;  // its deleter withdraws
};

/// A peer's arena in this process's address space, for the life of this object.
class Mapping {
 public:
  Mapping(core::Span floats, std::shared_ptr<void> keep) noexcept : floats_(floats), keep_(std::move(keep)) {}
  [[nodiscard]] core::Span view() const noexcept { return floats_; }

 private:
  core::Span floats_;
  std::shared_ptr<void> keep_;  // the memory or its mapping
};

class MappedMemory {
 public:
  virtual ~MappedMemory() = default;
  /// The allocator of arenas that will be exposed. Owned by the endpoint; free its buffers before the endpoint ends.
  [[nodiscard]] virtual core::Allocator& allocator() noexcept = 0;
  /// Offers the whole `arena` to peers. The buffer stays alive while it is exposed or attached, and must not be empty.
  [[nodiscard]] virtual core::Result<Exposure> expose(std::shared_ptr<core::Buffer> arena) = 0;
  /// Maps a peer's arena of `floats` floats. Errc::corrupt: it has another length. Errc::peer_lost: the offer was withdrawn or its
  /// owner has exited.
  [[nodiscard]] virtual core::Result<Mapping> attach(const ArenaKey& key, std::size_t floats) = 0;
};

}  // namespace troupe::transport
