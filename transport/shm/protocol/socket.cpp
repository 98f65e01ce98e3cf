#include "transport/shm/protocol/socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

constexpr int kBacklog = 1024;
constexpr int kSocketFlags = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;

struct SocketAddress {
  sockaddr_un name{};
  socklen_t length = 0;
};

/// A leading zero byte makes the name abstract: it is in no file system and ends with its last descriptor.
SocketAddress abstract_address(const std::string& socket_name) {
  SocketAddress address;
  address.name.sun_family = AF_UNIX;
  std::memcpy(address.name.sun_path + 1, socket_name.data(), socket_name.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + socket_name.size());
  return address;
}

core::FileDescriptor descriptor_in(msghdr& message) noexcept {
  core::FileDescriptor found;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, reinterpret_cast<const char*>(c) + at, sizeof fd);
      found = core::FileDescriptor(fd);  // of several descriptors the last is kept, the others are closed
    }
  }
  return found;
}

}  // namespace

struct ShmInbox::Slots {
  struct Slot {
    ShmHeader header;
    std::array<std::byte, kShmEagerBytes> payload;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control;
  };
  std::array<Slot, kFrames> slots;
};

ShmInbox::ShmInbox() : slots_(std::make_unique<Slots>()) { frames_.reserve(kFrames); }
ShmInbox::~ShmInbox() = default;

ShmRead ShmInbox::receive(int socket, std::size_t limit) {
  frames_.clear();
  std::array<mmsghdr, kFrames> messages{};
  std::array<std::array<iovec, 2>, kFrames> parts{};
  for (std::size_t i = 0; i < limit; ++i) {
    auto& slot = slots_->slots[i];
    parts[i] = {iovec{&slot.header, sizeof slot.header}, iovec{slot.payload.data(), slot.payload.size()}};
    msghdr& m = messages[i].msg_hdr;
    m.msg_iov = parts[i].data();
    m.msg_iovlen = parts[i].size();
    m.msg_control = slot.control.data();
    m.msg_controllen = slot.control.size();
  }
  int count = 0;
  do {
    count = ::recvmmsg(socket, messages.data(), static_cast<unsigned>(limit), MSG_DONTWAIT | MSG_CMSG_CLOEXEC, nullptr);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? ShmRead::drained : ShmRead::closed;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    msghdr& m = messages[i].msg_hdr;
    core::FileDescriptor descriptor = descriptor_in(m);
    const std::size_t length = messages[i].msg_len;
    if (length == 0) return ShmRead::closed;
    const auto& slot = slots_->slots[i];
    if (length < sizeof(ShmHeader) || (m.msg_flags & MSG_TRUNC) != 0 || slot.header.magic != ShmHeader::kMagic)
      return ShmRead::malformed;
    frames_.push_back({slot.header, std::span(slot.payload).first(length - sizeof(ShmHeader)), std::move(descriptor)});
  }
  return static_cast<std::size_t>(count) < limit ? ShmRead::drained : ShmRead::more;
}

bool wait_readable(int socket, core::Duration patience) noexcept {
  pollfd watched{socket, POLLIN, 0};
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
  int ready = 0;
  do {
    ready = ::poll(&watched, 1, static_cast<int>(ms));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

ShmWrite send_frame(int socket, const ShmHeader& header, std::span<const std::byte> payload, int descriptor) noexcept {
  std::array<iovec, 2> parts{iovec{const_cast<ShmHeader*>(&header), sizeof header},
                             iovec{const_cast<std::byte*>(payload.data()), payload.size()}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = payload.empty() ? 1 : 2;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &descriptor, sizeof descriptor);
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return ShmWrite::sent;
  return errno == EAGAIN || errno == EWOULDBLOCK ? ShmWrite::full : ShmWrite::gone;
}

core::Result<core::FileDescriptor> shm_listen(const std::string& socket_name) {
  core::FileDescriptor listener(::socket(AF_UNIX, kSocketFlags, 0));
  const SocketAddress address = abstract_address(socket_name);
  if (!listener || ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address.name), address.length) < 0 ||
      ::listen(listener.get(), kBacklog) < 0)
    return tl::unexpected(core::from_errno(errno, "listen on", "the socket of an shm endpoint"));
  return listener;
}

core::Result<core::FileDescriptor> shm_dial(const std::string& socket_name) {
  core::FileDescriptor socket(::socket(AF_UNIX, kSocketFlags, 0));
  if (!socket) return tl::unexpected(core::from_errno(errno, "open", "a socket to a peer"));
  const SocketAddress address = abstract_address(socket_name);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.name), address.length) == 0) return socket;
  if (errno == EAGAIN) return core::fail(core::Errc::peer_lost, "it does not accept connections");
  if (errno == ECONNREFUSED) return core::fail(core::Errc::peer_lost, "it is not on this host");
  return tl::unexpected(core::from_errno(errno, "connect", "to the socket of a peer"));
}

core::FileDescriptor shm_accept(int listener, int& error) noexcept {
  const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  error = fd >= 0 || errno == EAGAIN || errno == EWOULDBLOCK ? 0 : errno;
  return core::FileDescriptor(fd);
}

ShmProcess process_of(int socket) noexcept {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0) return {};
  return {credentials.pid, credentials.uid == ::geteuid()};
}

core::FileDescriptor watch_process(pid_t process) noexcept {
  return process > 0 ? core::FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)))
                     : core::FileDescriptor();
}

bool hung_up(int socket) noexcept {
  pollfd watched{socket, POLLRDHUP, 0};
  return ::poll(&watched, 1, 0) != 0;
}

bool has_ended(int process_descriptor) noexcept {
  pollfd watched{process_descriptor, POLLIN, 0};
  return process_descriptor >= 0 && ::poll(&watched, 1, 0) != 0;
}

void hang_up(core::FileDescriptor& socket) noexcept {
  if (!socket) return;
  ::shutdown(socket.get(), SHUT_RDWR);
  // Closing a socket with unread packets would reset the connection, and the peer could not read our last ones.
  std::byte ignored{};
  while (::recv(socket.get(), &ignored, 1, MSG_DONTWAIT | MSG_TRUNC) > 0) {
  }
  socket.reset();
}

}  // namespace troupe::transport
