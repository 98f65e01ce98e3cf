#include "transport/shm/memory/arenas.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

constexpr core::Duration kPatience = std::chrono::seconds{5};  // a silent peer counts as lost then

tl::unexpected<core::Error> not_on_offer(const std::string& label) {
  return core::fail(core::Errc::peer_lost,
                    fmt::format("arena {} is not on offer: withdrawn, or its owner is gone", label));
}

}  // namespace

ShmArenas::ShmArenas(ShmAddress owner) : owner_(std::move(owner)) {}

core::Result<void*> ShmArenas::allocate(std::size_t bytes) {
  auto file = make_memory_file(bytes);
  if (!file) return tl::unexpected(file.error());
  void* const memory = file->mapping.data();
  const std::lock_guard lock(mutex_);
  files_.emplace(memory, std::move(*file));
  return memory;
}

void ShmArenas::deallocate(void* memory, std::size_t /*bytes*/) noexcept {
  const std::lock_guard lock(mutex_);
  files_.erase(memory);
}

core::Result<Exposure> ShmArenas::expose(std::shared_ptr<core::Buffer> arena) {
  if (!arena || arena->empty()) throw std::invalid_argument("expose: no arena, or an empty one");
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!files_.contains(arena->data()))
      throw std::invalid_argument("expose: the arena is not from this endpoint's allocator");
    number = next_number_++;
  }
  {
    const std::lock_guard lock(offers_->mutex);
    if (offers_->closed)
      return core::fail(core::Errc::usage, fmt::format("{} is closed and cannot expose an arena", owner_.label()));
    offers_->arenas.emplace(number, std::move(arena));
  }
  const auto withdraw = [offers = offers_, number](void*) {
    std::shared_ptr<core::Buffer> withdrawn;  // destroyed after the mutex is unlocked
    const std::lock_guard lock(offers->mutex);
    if (const auto found = offers->arenas.find(number); found != offers->arenas.end()) {
      withdrawn = std::move(found->second);
      offers->arenas.erase(found);
    }
  };
  return Exposure({ShmArenaKey{owner_, number}.text()}, std::shared_ptr<void>(nullptr, withdraw));
}

core::Result<Mapping> ShmArenas::attach(const ArenaKey& key, std::size_t floats) {
  const auto named = ShmArenaKey::parse(key.text);
  if (!named) return not_on_offer(fmt::format("'{}'", key.text));
  const std::string label = fmt::format("{}arena/{}", named->owner.label(), named->number);
  const auto socket = shm_dial(named->owner.socket_name());
  if (!socket && socket.error().code != core::Errc::peer_lost) return tl::unexpected(socket.error());
  if (!socket || !process_of(socket->get()).same_user) return not_on_offer(label);
  const ShmIntroduction introduction{
      .secret_of_receiver = named->owner.secret, .id_of_sender = owner_.id, .secret_of_sender = owner_.secret};
  if (send_frame(socket->get(), {.kind = ShmFrameKind::attach, .id = named->number},
                 std::as_bytes(std::span(&introduction, 1))) != ShmWrite::sent)
    return not_on_offer(label);
  if (!wait_readable(socket->get(), kPatience))
    return core::fail(core::Errc::timeout, fmt::format("the owner of arena {} does not answer", label));
  ShmInbox inbox;
  (void)inbox.receive(socket->get(), 1);  // the received frame decides, not the state of the socket
  if (inbox.frames().empty() || inbox.frames()[0].header.kind != ShmFrameKind::arena || !inbox.frames()[0].descriptor)
    return not_on_offer(label);
  const ShmFrame& frame = inbox.frames()[0];
  if (frame.header.size != floats)
    return core::fail(core::Errc::corrupt,
                      fmt::format("arena {} holds {} floats, not {}", label, frame.header.size, floats));
  auto mapping = map_memory_file(frame.descriptor, floats * sizeof(float));
  if (!mapping) return core::fail(mapping.error().code, fmt::format("arena {}: {}", label, mapping.error().message));
  const auto kept = std::make_shared<ShmMapping>(std::move(*mapping));
  return Mapping({reinterpret_cast<float*>(kept->data()), floats}, kept);
}

void ShmArenas::serve(int socket, std::uint64_t number) noexcept {
  std::shared_ptr<core::Buffer> arena;
  {
    const std::lock_guard lock(offers_->mutex);
    if (const auto found = offers_->arenas.find(number); found != offers_->arenas.end()) arena = found->second;
  }
  int descriptor = -1;
  const std::lock_guard lock(mutex_);
  if (arena)
    if (const auto file = files_.find(arena->data()); file != files_.end()) descriptor = file->second.descriptor.get();
  // Nothing was written to this socket before, so the send succeeds or the peer has left.
  (void)send_frame(socket, {.kind = ShmFrameKind::arena, .id = number, .size = arena ? arena->size() : 0}, {},
                   descriptor);
}

void ShmArenas::close() noexcept {
  std::map<std::uint64_t, std::shared_ptr<core::Buffer>> withdrawn;  // destroyed after the mutex is unlocked
  const std::lock_guard lock(offers_->mutex);
  offers_->closed = true;
  withdrawn.swap(offers_->arenas);
}

}  // namespace troupe::transport
