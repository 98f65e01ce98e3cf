#include "transport/shm/listener.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace troupe::transport {
namespace {

constexpr std::size_t kMaxCallers = 1024;  // introduced, waiting for our connect()
constexpr std::ptrdiff_t kMaxSilent = 16;  // few: peers introduce themselves at once, and each costs a descriptor

Descriptor any_descriptor() noexcept { return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

}  // namespace

core::Result<void> ShmDoor::open() {
  auto listener = shm_listen(self_.address.socket_name());
  if (!listener) return tl::unexpected(listener.error());
  listener_ = std::move(*listener);
  spare_ = any_descriptor();
  return {};
}

/// 0: that one was turned away. Nothing: nobody is left.
std::optional<std::uint64_t> ShmDoor::accept_one() {
  if (!listener_) return std::nullopt;
  int error = 0;
  Descriptor socket = shm_accept(listener_.get(), error);
  if (error == EMFILE || error == ENFILE) {
    // Who stands there would make the listener readable for ever: somebody has to go, if need be the one that comes.
    if (const auto silent = oldest_silent()) {
      turn_away(*silent);
      return 0;
    }
    spare_.reset();
    socket = shm_accept(listener_.get(), error);
    const bool somebody = static_cast<bool>(socket);
    socket.reset();
    spare_ = any_descriptor();
    return somebody ? std::optional<std::uint64_t>(0) : std::nullopt;
  }
  if (!socket) return error == ECONNABORTED ? std::optional<std::uint64_t>(0) : std::nullopt;
  if (!process_of(socket.get()).same_user) return 0;
  make_room();
  strangers_.emplace(++last_number_, Stranger{std::move(socket)});
  return last_number_;
}

/// Of those that have not said anything: what waits to be heard counts.
std::optional<std::uint64_t> ShmDoor::oldest_silent() const {
  const auto silent = std::ranges::find_if(strangers_, [](const auto& s) {
    return !s.second.introduction && !wait_readable(s.second.socket.get(), core::Duration{0});
  });
  return silent == strangers_.end() ? std::nullopt : std::optional(silent->first);
}

void ShmDoor::make_room() {
  const auto unknown = std::ranges::count_if(strangers_, [](const auto& s) { return !s.second.introduction; });
  if (unknown >= kMaxSilent)
    if (const auto silent = oldest_silent()) turn_away(*silent);
  if (strangers_.size() >= kMaxCallers) turn_away(strangers_.begin()->first);
}

void ShmDoor::turn_away(std::uint64_t number) noexcept {
  const auto stranger = strangers_.find(number);
  hang_up(stranger->second.socket);
  strangers_.erase(stranger);
}

std::optional<ShmToken> ShmDoor::hear(std::uint64_t number) {
  const auto found = strangers_.find(number);
  if (found == strangers_.end()) return std::nullopt;
  Stranger& stranger = found->second;
  const ShmRead read = inbox_.receive(stranger.socket.get(), 1);
  if (read == ShmRead::drained) return std::nullopt;
  ShmIntroduction introduction;
  const bool introduces =
      inbox_.frames().size() == 1 && !stranger.introduction && inbox_.frames()[0].payload.size() == sizeof introduction;
  if (introduces) std::memcpy(&introduction, inbox_.frames()[0].payload.data(), sizeof introduction);
  if (!introduces || !same_secret(introduction.secret_of_receiver, self_.address.secret)) {
    turn_away(number);
    return std::nullopt;
  }
  const ShmHeader& header = inbox_.frames()[0].header;
  // One that has left meanwhile must not be taken for one that waits.
  if (header.kind != ShmFrameKind::hello || hung_up(stranger.socket.get())) {
    if (header.kind == ShmFrameKind::attach) arenas_.serve(stranger.socket.get(), header.id);
    turn_away(number);
    return std::nullopt;
  }
  // It has called before, and given that up.
  std::vector<std::uint64_t> earlier;
  for (const auto& [other, s] : strangers_)
    if (s.introduction && s.introduction->id_of_sender == introduction.id_of_sender) earlier.push_back(other);
  for (const std::uint64_t other : earlier) turn_away(other);
  stranger.introduction = introduction;
  return introduction.id_of_sender;
}

std::vector<std::uint64_t> ShmDoor::numbers() const {
  std::vector<std::uint64_t> numbers;
  for (const auto& entry : strangers_) numbers.push_back(entry.first);
  return numbers;
}

std::optional<ShmDoor::Caller> ShmDoor::take(const ShmAddress& peer) {
  const auto found = std::ranges::find_if(strangers_, [&](const auto& s) {
    return s.second.introduction && s.second.introduction->id_of_sender == peer.id &&
           same_secret(s.second.introduction->secret_of_sender, peer.secret);
  });
  if (found == strangers_.end()) return std::nullopt;
  Caller caller{std::move(found->second.socket), *found->second.introduction};
  strangers_.erase(found);
  return caller;
}

void ShmDoor::close() noexcept {
  listener_.reset();
  for (auto& [number, stranger] : strangers_) hang_up(stranger.socket);
  strangers_.clear();
}

}  // namespace troupe::transport
