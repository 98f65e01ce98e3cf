/// Arenas that peers can map, and the arenas of peers mapped into this process, in memory of the host or of devices: the algorithm `shm` sums in
/// them, and calls lend vectors of devices in them (rpc.hpp). The owner of a vector sends its place (ArenaPlace). The receiver attaches an
/// unknown arena, and keeps it attached.
///
/// Thread-safe as an allocator; the operation queue's thread calls the other functions. Memory is exposed until it is freed. The object,
/// and with it its mapped memory, lives until it has no user and all its memory is freed, so loans may outlive the creator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "core/buffer.hpp"
#include "core/error.hpp"
#include "core/kernels.hpp"
#include "transport/endpoint.hpp"
#include "transport/mapped_memory.hpp"

namespace troupe::exchange {

/// Sent over the endpoint in host byte order: members of one host have the same byte order.
struct ArenaPlace {
  std::uint64_t arena_floats = 0;
  std::uint64_t offset = 0;     // floats
  std::array<char, 200> key{};  // transport::ArenaKey, padded with zeros
};
static_assert(sizeof(ArenaPlace) == 216 && std::is_trivially_copyable_v<ArenaPlace>);

class Arenas final : public core::Allocator, public std::enable_shared_from_this<Arenas> {
 public:
  /// REQUIRES that `endpoint` maps peers' memory: else std::invalid_argument.
  [[nodiscard]] static std::shared_ptr<Arenas> create(const std::shared_ptr<transport::Endpoint>& endpoint);
  [[nodiscard]] static std::shared_ptr<Arenas> create(std::shared_ptr<transport::MappedMemory> mapped);

  [[nodiscard]] core::MemorySpace space() const noexcept override;
  /// Errors: those of the endpoint's memory, and Errc::usage after the endpoint's close().
  [[nodiscard]] core::Result<void*> allocate(std::size_t bytes) override;
  void deallocate(void* memory, std::size_t bytes) noexcept override;

  [[nodiscard]] bool contains(core::ConstSpan vector) const;
  /// REQUIRES contains(vector).
  [[nodiscard]] ArenaPlace place_of(core::ConstSpan vector) const;

  /// The vector of `floats` floats at `place` in an arena of `owner`. It stays valid while the caller keeps the result, even when the owner
  /// is lost. Attaches an unknown arena, or one that has another length than before; this may block as long as a peer may be silent. Errc::peer_lost, timeout; config: memory of a device
  /// that this process cannot map; corrupt for an invalid place.
  [[nodiscard]] core::Result<transport::Mapping> vector_at(transport::Peer owner, const ArenaPlace& place,
                                                           std::size_t floats);
  /// Releases the arenas of a peer that no vector_at() is held of. False: some are in use, and stay attached. A user may end on any thread.
  [[nodiscard]] bool release(transport::Peer owner);
  /// Releases the arenas of a lost peer. Those in use stay mapped until their users end.
  void forget(transport::Peer owner) { attached_.erase(owner); }

 private:
  explicit Arenas(std::shared_ptr<transport::MappedMemory> mapped);

  struct Own {
    std::shared_ptr<core::Buffer> memory;
    transport::Exposure exposure;
  };
  using OwnArenas = std::map<const float*, Own>;  // key: the arena's first float
  [[nodiscard]] OwnArenas::const_iterator find(core::ConstSpan vector) const;

  const std::shared_ptr<transport::MappedMemory> mapped_;
  mutable std::mutex mutex_;  // guards the next two members
  OwnArenas own_;
  std::shared_ptr<Arenas> self_;  // this object, while it has memory
  struct Attached {
    std::map<std::string, std::shared_ptr<transport::Mapping>> known;  // by key
    std::vector<std::shared_ptr<transport::Mapping>> former;  // replaced by one of another length, perhaps in use
  };
  std::map<transport::Peer, Attached> attached_;
};

}  // namespace troupe::exchange
