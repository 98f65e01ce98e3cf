#include "transport/shm/listener.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace troupe::transport {
namespace {

constexpr std::size_t kMaxCallers = 1024;  // introduced, waiting for this side's connect()
constexpr std::ptrdiff_t kMaxSilent = 16;  // few: peers introduce themselves at once, and each costs a descriptor

core::FileDescriptor any_descriptor() noexcept {
  return core::FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

core::Result<void> ShmListener::open() {
  auto listener = shm_listen(self_.address.socket_name());
  if (!listener) return tl::unexpected(listener.error());
  listener_ = std::move(*listener);
  spare_ = any_descriptor();
  return {};
}

/// Returns 0 for a connection that was closed, and nothing when no connection waits.
std::optional<std::uint64_t> ShmListener::accept_one() {
  if (!listener_) return std::nullopt;
  int error = 0;
  core::FileDescriptor socket = shm_accept(listener_.get(), error);
  if (error == EMFILE || error == ENFILE) {
    // A waiting connection keeps the listener readable for ever, so one connection must be closed: a silent one, else the new one.
    if (const auto silent = oldest_silent()) {
      reject(*silent);
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
  pending_connections_.emplace(++last_number_, PendingConnection{std::move(socket)});
  return last_number_;
}

/// The oldest pending connection that has not sent a frame; a frame that waits to be read counts as sent.
std::optional<std::uint64_t> ShmListener::oldest_silent() const {
  const auto silent = std::ranges::find_if(pending_connections_, [](const auto& s) {
    return !s.second.introduction && !wait_readable(s.second.socket.get(), core::Duration{0});
  });
  return silent == pending_connections_.end() ? std::nullopt : std::optional(silent->first);
}

void ShmListener::make_room() {
  const auto unknown =
      std::ranges::count_if(pending_connections_, [](const auto& s) { return !s.second.introduction; });
  if (unknown >= kMaxSilent)
    if (const auto silent = oldest_silent()) reject(*silent);
  if (pending_connections_.size() >= kMaxCallers) reject(pending_connections_.begin()->first);
}

void ShmListener::reject(std::uint64_t number) noexcept {
  const auto pending_connection = pending_connections_.find(number);
  hang_up(pending_connection->second.socket);
  pending_connections_.erase(pending_connection);
}

std::optional<ShmToken> ShmListener::hear(std::uint64_t number) {
  const auto found = pending_connections_.find(number);
  if (found == pending_connections_.end()) return std::nullopt;
  PendingConnection& pending_connection = found->second;
  const ShmRead read = inbox_.receive(pending_connection.socket.get(), 1);
  if (read == ShmRead::drained) return std::nullopt;
  ShmIntroduction introduction;
  const bool introduces = inbox_.frames().size() == 1 && !pending_connection.introduction &&
                          inbox_.frames()[0].payload.size() == sizeof introduction;
  if (introduces) std::memcpy(&introduction, inbox_.frames()[0].payload.data(), sizeof introduction);
  if (!introduces || !same_secret(introduction.secret_of_receiver, self_.address.secret)) {
    reject(number);
    return std::nullopt;
  }
  const ShmHeader& header = inbox_.frames()[0].header;
  // A caller that has left must not count as waiting.
  if (header.kind != ShmFrameKind::hello || hung_up(pending_connection.socket.get())) {
    if (header.kind == ShmFrameKind::attach) arenas_.serve(pending_connection.socket.get(), header.id);
    reject(number);
    return std::nullopt;
  }
  // Earlier connections of the same caller: it gave them up.
  std::vector<std::uint64_t> earlier;
  for (const auto& [other, s] : pending_connections_)
    if (s.introduction && s.introduction->id_of_sender == introduction.id_of_sender) earlier.push_back(other);
  for (const std::uint64_t other : earlier) reject(other);
  pending_connection.introduction = introduction;
  return introduction.id_of_sender;
}

std::vector<std::uint64_t> ShmListener::numbers() const {
  std::vector<std::uint64_t> numbers;
  for (const auto& entry : pending_connections_) numbers.push_back(entry.first);
  return numbers;
}

std::optional<ShmListener::Caller> ShmListener::take(const ShmAddress& peer) {
  const auto found = std::ranges::find_if(pending_connections_, [&](const auto& s) {
    return s.second.introduction && s.second.introduction->id_of_sender == peer.id &&
           same_secret(s.second.introduction->secret_of_sender, peer.secret);
  });
  if (found == pending_connections_.end()) return std::nullopt;
  Caller caller{std::move(found->second.socket), *found->second.introduction};
  pending_connections_.erase(found);
  return caller;
}

void ShmListener::close() noexcept {
  listener_.reset();
  for (auto& [number, pending_connection] : pending_connections_) hang_up(pending_connection.socket);
  pending_connections_.clear();
}

}  // namespace troupe::transport
