#include "transport/exchange/arenas.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace troupe::exchange {
namespace {

/// Its users have copies; only this object makes the first one.
bool is_unused(const std::shared_ptr<transport::Mapping>& arena) { return arena.use_count() == 1; }

}  // namespace

Arenas::Arenas(std::shared_ptr<transport::MappedMemory> mapped) : mapped_(std::move(mapped)) {}

std::shared_ptr<Arenas> Arenas::create(const std::shared_ptr<transport::Endpoint>& endpoint) {
  auto* const mapped = endpoint ? endpoint->mapped_memory() : nullptr;
  if (!mapped) throw std::invalid_argument("arenas: no endpoint that maps memory");
  return create(std::shared_ptr<transport::MappedMemory>(endpoint, mapped));
}

std::shared_ptr<Arenas> Arenas::create(std::shared_ptr<transport::MappedMemory> mapped) {
  return std::shared_ptr<Arenas>(new Arenas(std::move(mapped)));
}

core::MemorySpace Arenas::space() const noexcept { return mapped_->allocator().space(); }

core::Result<void*> Arenas::allocate(std::size_t bytes) {
  auto buffer = core::Buffer::allocate(mapped_->allocator(), (bytes + sizeof(float) - 1) / sizeof(float));
  if (!buffer) return tl::unexpected(buffer.error());
  auto memory = std::make_shared<core::Buffer>(std::move(*buffer));
  auto exposure = mapped_->expose(memory);
  if (!exposure) return tl::unexpected(exposure.error());
  if (exposure->key().text.size() > ArenaPlace{}.key.size())
    throw std::logic_error("arenas: a key that is too long: " + exposure->key().text);
  float* const begin = memory->data();
  const std::lock_guard lock(mutex_);
  own_.emplace(begin, Own{std::move(memory), std::move(*exposure)});
  self_ = shared_from_this();
  return begin;
}

void Arenas::deallocate(void* memory, std::size_t /*bytes*/) noexcept {
  std::shared_ptr<Arenas> last;  // first local: destroyed last, with this object's last reference
  OwnArenas::node_type arena;
  const std::lock_guard lock(mutex_);
  arena = own_.extract(static_cast<const float*>(memory));
  if (own_.empty()) last = std::move(self_);
}

Arenas::OwnArenas::const_iterator Arenas::find(core::ConstSpan vector) const {
  const auto behind = own_.upper_bound(vector.data());
  if (behind == own_.begin()) return own_.end();
  const auto arena = std::prev(behind);
  const auto offset = static_cast<std::size_t>(vector.data() - arena->first);
  const auto floats = arena->second.memory->size();
  return offset <= floats && vector.size() <= floats - offset ? arena : own_.end();
}

bool Arenas::contains(core::ConstSpan vector) const {
  const std::lock_guard lock(mutex_);
  return find(vector) != own_.end();
}

ArenaPlace Arenas::place_of(core::ConstSpan vector) const {
  const std::lock_guard lock(mutex_);
  const auto arena = find(vector);
  if (arena == own_.end()) throw std::invalid_argument("arenas: the vector is in none of them");
  ArenaPlace place{.arena_floats = arena->second.memory->size(),
                   .offset = static_cast<std::uint64_t>(vector.data() - arena->first)};
  std::ranges::copy(arena->second.exposure.key().text, place.key.begin());
  return place;
}

core::Result<transport::Mapping> Arenas::vector_at(transport::Peer owner, const ArenaPlace& place, std::size_t floats) {
  constexpr auto kMostFloats = std::numeric_limits<std::size_t>::max() / sizeof(float);
  if (place.arena_floats > kMostFloats || place.offset > place.arena_floats ||
      floats > place.arena_floats - place.offset || place.offset % core::kAlignmentFloats != 0)
    return core::fail(core::Errc::corrupt, "a member's vector is outside its arena");
  const std::string key(place.key.begin(), std::ranges::find(place.key, '\0'));
  auto& [known, former] = attached_[owner];
  const auto found = known.find(key);
  auto arena = found == known.end() ? nullptr : found->second;
  // A device's memory keeps its key from one allocation to the next, which may be longer or shorter.
  if (!arena || arena->view().size() != place.arena_floats) {
    auto mapping = mapped_->attach({key}, place.arena_floats);
    if (!mapping) return tl::unexpected(mapping.error());
    std::erase_if(former, is_unused);
    if (arena) former.push_back(std::move(arena));
    arena = known[key] = std::make_shared<transport::Mapping>(std::move(*mapping));
  }
  return transport::Mapping(arena->view().subspan(place.offset, floats), arena);
}

bool Arenas::release(transport::Peer owner) {
  const auto found = attached_.find(owner);
  if (found == attached_.end()) return true;
  auto& [known, former] = found->second;
  std::erase_if(former, is_unused);
  std::erase_if(known, [](const auto& entry) { return is_unused(entry.second); });
  if (!known.empty() || !former.empty()) return false;
  attached_.erase(found);
  return true;
}

}  // namespace troupe::exchange
