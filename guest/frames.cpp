#include "guest/frames.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace troupe::guest {
namespace {

constexpr std::size_t kMostDescriptors = 8;

/// Little-endian on every machine that this program is for.
struct Head {
  std::uint32_t length = 0;
  std::uint16_t type = 0;
  std::uint16_t zero = 0;
};
static_assert(sizeof(Head) == 8);

bool is_of_guest(std::uint16_t type) { return type >= 1 && type <= static_cast<std::uint16_t>(FrameType::loaded); }

core::Error closed() { return {core::Errc::io, "the guest has closed its connection"}; }

}  // namespace

std::string_view name_of(FrameType type) noexcept {
  switch (type) {
    case FrameType::hello: return "HELLO";
    case FrameType::plan: return "PLAN";
    case FrameType::ready: return "READY";
    case FrameType::done: return "DONE";
    case FrameType::bucket: return "BUCKET";
    case FrameType::stepped: return "STEPPED";
    case FrameType::evaluated: return "EVALUATED";
    case FrameType::state: return "STATE";
    case FrameType::synced: return "SYNCED";
    case FrameType::failed: return "FAILED";
    case FrameType::waits: return "WAITS";
    case FrameType::loaded: return "LOADED";
    case FrameType::welcome: return "WELCOME";
    case FrameType::step: return "STEP";
    case FrameType::optimize: return "OPTIMIZE";
    case FrameType::evaluate: return "EVALUATE";
    case FrameType::save: return "SAVE";
    case FrameType::load: return "LOAD";
    case FrameType::sync: return "SYNC";
    case FrameType::changed: return "CHANGED";
    case FrameType::last: return "LAST";
    case FrameType::end: return "END";
  }
  return "a frame of an unknown type";
}

Frames::Frames(core::FileDescriptor socket, int watch) : socket_(std::move(socket)), watch_(watch) {
  const int flags = ::fcntl(socket_.get(), F_GETFL);
  (void)::fcntl(socket_.get(), F_SETFL, flags | O_NONBLOCK);
}

core::Result<void> Frames::wait(short events, Deadline deadline, std::string_view what) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    std::array<pollfd, 2> watched{pollfd{socket_.get(), events, 0}, pollfd{watch_, POLLIN, 0}};
    const int ready =
        ::poll(watched.data(), watched.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
    if (ready > 0 && watched[0].revents != 0) return {};  // also what it sent before it ended
    if (ready > 0) return core::fail(core::Errc::io, "the guest has ended");
    if (ready < 0 && errno != EINTR)
      return core::fail(core::Errc::io, fmt::format("the guest's connection: {}", std::strerror(errno)));
    if (ready == 0 && left <= 0) return core::fail(core::Errc::timeout, fmt::format("the guest {}", what));
  }
}

core::Result<void> Frames::send(FrameType type, std::span<const std::byte> payload, std::span<const int> descriptors,
                                Deadline deadline) {
  if (payload.size() > kMostPayload || descriptors.size() > kMostDescriptors)
    return core::fail(core::Errc::internal, fmt::format("{} of {} bytes is too long", name_of(type), payload.size()));
  Head head{static_cast<std::uint32_t>(payload.size()), static_cast<std::uint16_t>(type), 0};
  std::size_t sent = 0;
  const std::size_t all = sizeof(head) + payload.size();
  while (sent < all) {
    msghdr message{};
    std::array<iovec, 2> rest{};
    const std::size_t of_head = std::min(sent, sizeof(head));
    rest[0] = {reinterpret_cast<std::byte*>(&head) + of_head, sizeof(head) - of_head};
    rest[1] = {const_cast<std::byte*>(payload.data()) + (sent - of_head), payload.size() - (sent - of_head)};
    message.msg_iov = rest.data();
    message.msg_iovlen = rest.size();
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
    if (sent == 0 && !descriptors.empty()) {  // they travel with the first byte
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
      cmsghdr* rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
      std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
    }
    const ssize_t count = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET) return tl::unexpected(closed());
    if (errno != EAGAIN && errno != EWOULDBLOCK)
      return core::fail(core::Errc::io, fmt::format("the guest's connection: {}", std::strerror(errno)));
    if (auto ready = wait(POLLOUT, deadline, "does not read what it is sent"); !ready) return ready;
  }
  return {};
}

core::Result<void> Frames::fill(std::span<std::byte> into, std::size_t& filled, Deadline deadline) {
  while (filled < into.size()) {
    const ssize_t count = ::recv(socket_.get(), into.data() + filled, into.size() - filled, 0);
    if (count > 0) {
      filled += static_cast<std::size_t>(count);
      continue;
    }
    if (count == 0 || errno == ECONNRESET) return tl::unexpected(closed());
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
      return core::fail(core::Errc::io, fmt::format("the guest's connection: {}", std::strerror(errno)));
    if (auto ready = wait(POLLIN, deadline, "is silent"); !ready) return ready;
  }
  return {};
}

core::Result<Frame> Frames::receive(Deadline deadline) {
  if (auto filled = fill(head_, of_head_, deadline); !filled) return tl::unexpected(std::move(filled.error()));
  Head head;
  std::memcpy(&head, head_.data(), sizeof(head));
  if (!is_of_guest(head.type) || head.zero != 0)
    return core::fail(core::Errc::data,
                      fmt::format("the guest sent a frame of type {} with second half-word {}: not the guest protocol",
                                  head.type, head.zero));
  if (head.length > kMostPayload)
    return core::fail(core::Errc::data, fmt::format("the guest sent {} of {} bytes, {} are allowed",
                                                    name_of(FrameType{head.type}), head.length, kMostPayload));
  payload_.resize(head.length);
  if (auto filled = fill(payload_, of_payload_, deadline); !filled) return tl::unexpected(std::move(filled.error()));
  of_head_ = of_payload_ = 0;
  return Frame{FrameType{head.type}, std::exchange(payload_, {})};
}

}  // namespace troupe::guest
