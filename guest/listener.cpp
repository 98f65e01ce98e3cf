#include "guest/listener.hpp"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "guest/process_tree.hpp"

namespace troupe::guest {
namespace {

constexpr std::size_t kMostVisitors = 16;  // pending connections; at most one is the guest
constexpr int kBacklog = 128;

std::string random_hex(std::size_t bytes) {
  std::vector<unsigned char> random(bytes);
  std::size_t filled = 0;
  while (filled < bytes) {
    const ssize_t count = ::getrandom(random.data() + filled, bytes - filled, 0);
    if (count > 0) filled += static_cast<std::size_t>(count);
  }
  std::string text;
  for (const unsigned char byte : random) text += fmt::format("{:02x}", byte);
  return text;
}

core::Error socket_error(const char* what) {
  return {core::Errc::io, fmt::format("the socket for a program: {}: {}", what, std::strerror(errno))};
}

/// The content of a first frame, which must be HELLO.
core::Result<Introduction> introduction_in(const Frame& frame) {
  if (frame.type == FrameType::hello) return parse_hello(frame.text());
  return core::fail(core::Errc::data, fmt::format("the guest said {} before HELLO", name_of(frame.type)));
}

}  // namespace

core::Result<GuestListener> GuestListener::open() {
  GuestListener listener;
  listener.name_ = fmt::format("troupe-{}-{}", ::getpid(), random_hex(8));
  listener.token_ = random_hex(16);
  listener.socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.socket_) return tl::unexpected(socket_error("socket"));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, listener.name_.data(), listener.name_.size());  // abstract: leaves no file
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + listener.name_.size());
  if (::bind(listener.socket_.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0)
    return tl::unexpected(socket_error("bind"));
  if (::listen(listener.socket_.get(), kBacklog) != 0) return tl::unexpected(socket_error("listen"));
  return listener;
}

bool GuestListener::accept_all(const GuestProcess& process, std::vector<Visitor>& visitors) const {
  for (std::size_t count = 0; count < kMostVisitors; ++count) {
    core::FileDescriptor socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) return errno != EMFILE && errno != ENFILE;
    ucred peer{};
    socklen_t length = sizeof(peer);
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.uid != ::geteuid()) continue;
    if (visitors.size() == kMostVisitors) {  // drop the oldest; one of the program's only if all are
      const auto stray = std::ranges::find(visitors, false, &Visitor::is_program);
      visitors.erase(stray == visitors.end() ? visitors.begin() : stray);
    }
    visitors.push_back({Frames(std::move(socket), process.watch()), is_descendant(peer.pid, process.id())});
  }
  return true;
}

core::Result<GuestListener::Arrival> GuestListener::await(GuestProcess& process, Frames::Deadline deadline) {
  std::vector<Visitor> visitors;
  for (;;) {
    // Asked before accept_all(), which then sees every connection that was made before the end.
    const bool has_ended = process.ending(std::chrono::milliseconds(0)).has_value();
    const bool accepts = accept_all(process, visitors);
    for (std::size_t k = 0; k < visitors.size();) {
      auto& [frames, is_program] = visitors[k];
      auto frame = frames.receive(std::chrono::steady_clock::now());
      if (!frame && frame.error().code == core::Errc::timeout) {  // the rest is to come
        ++k;
        continue;
      }
      const bool knows_token = frame && frame->text().find(token_) != std::string_view::npos;
      auto said = std::move(frame).and_then(introduction_in);
      if (said && said->token == token_) return Arrival{std::move(frames), std::move(*said)};
      if (!said && (is_program || knows_token)) return tl::unexpected(std::move(said.error()));
      visitors.erase(visitors.begin() + static_cast<std::ptrdiff_t>(k));
    }
    if (has_ended) return core::fail(core::Errc::io, "the program has not called troupe.join");
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) {
      const bool connected = std::ranges::find(visitors, true, &Visitor::is_program) != visitors.end();
      return core::fail(core::Errc::timeout,
                        connected ? "the guest is silent" : "the program has not called troupe.join");
    }
    // poll() ignores a descriptor of -1. Without it a connection that cannot be accepted would make it return at once.
    std::vector<pollfd> watched{{accepts ? socket_.get() : -1, POLLIN, 0}, {process.watch(), POLLIN, 0}};
    for (const auto& visitor : visitors) watched.push_back({visitor.frames.descriptor(), POLLIN, 0});
    const bool sees_end = process.watch() >= 0;  // else poll its end
    (void)::poll(watched.data(), watched.size(),
                 static_cast<int>(std::min<std::int64_t>(left, sees_end && accepts ? 60'000 : 50)));
  }
}

}  // namespace troupe::guest
