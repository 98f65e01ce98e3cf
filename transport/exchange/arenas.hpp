/// Arenas that peers can map, and those of peers that are mapped here: what the algorithm `shm` sums in. A vector is where its owner says
/// that it is (ArenaPlace); whoever hears of an arena for the first time attaches it, and keeps it attached.
///
/// As an allocator thread-safe: all memory is exposed until it is freed. The object, and with it the endpoint, lives until nobody holds it
/// and none of its memory is left, so that loans may outlive whoever made it. The rest is one thread's, that of the courier.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>

#include "core/buffer.hpp"
#include "core/error.hpp"
#include "core/kernels.hpp"
#include "transport/endpoint.hpp"
#include "transport/mapped_memory.hpp"

namespace troupe::exchange {

/// Goes over the endpoint as it is: members of one host have one byte order.
struct ArenaPlace {
  std::uint64_t arena_floats = 0;
  std::uint64_t offset = 0;     // floats
  std::array<char, 112> key{};  // transport::ArenaKey, filled up with zeros
};
static_assert(sizeof(ArenaPlace) == 128 && std::is_trivially_copyable_v<ArenaPlace>);

class Arenas final : public core::Allocator, public std::enable_shared_from_this<Arenas> {
 public:
  /// REQUIRES that `endpoint` maps_peer_memory: else std::invalid_argument.
  [[nodiscard]] static std::shared_ptr<Arenas> create(std::shared_ptr<transport::Endpoint> endpoint);

  [[nodiscard]] core::MemorySpace space() const noexcept override;
  /// Errors: those of the endpoint's memory, and Errc::usage after its close().
  [[nodiscard]] core::Result<void*> allocate(std::size_t bytes) override;
  void deallocate(void* memory, std::size_t bytes) noexcept override;

  [[nodiscard]] bool contains(core::ConstSpan vector) const;
  /// REQUIRES contains(vector).
  [[nodiscard]] ArenaPlace place_of(core::ConstSpan vector) const;

  /// The vector of so many floats that lies at `place` in an arena of `owner`, valid as long as the answer is kept, whatever becomes of
  /// its owner. An arena that is new here is attached, which may wait for its owner as long as a peer may be silent. Errc::peer_lost,
  /// timeout; corrupt for a place that is none.
  [[nodiscard]] core::Result<transport::Mapping> vector_at(transport::Peer owner, const ArenaPlace& place,
                                                           std::size_t floats);
  /// The arenas of a peer that is gone are not kept any longer.
  void forget(transport::Peer owner) { attached_.erase(owner); }

 private:
  explicit Arenas(std::shared_ptr<transport::Endpoint> endpoint);

  struct Own {
    std::shared_ptr<core::Buffer> memory;
    transport::Exposure exposure;
  };
  using OwnArenas = std::map<const float*, Own>;  // by where they begin
  [[nodiscard]] OwnArenas::const_iterator find(core::ConstSpan vector) const;

  const std::shared_ptr<transport::Endpoint> endpoint_;
  transport::MappedMemory& mapped_;
  mutable std::mutex mutex_;  // of the two that follow
  OwnArenas own_;
  std::shared_ptr<Arenas> self_;  // while there is any
  std::map<transport::Peer, std::map<std::string, std::shared_ptr<transport::Mapping>>> attached_;  // by key
};

}  // namespace troupe::exchange
