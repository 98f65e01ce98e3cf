#include "transport/tcp/socket_options.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>

namespace troupe::transport {
namespace {

constexpr int kUnsentBytes = 512 << 10;

void set(int socket, int level, int option, int value) noexcept {
  (void)::setsockopt(socket, level, option, &value, sizeof value);
}

}  // namespace

void set_options(tcp::socket& socket, const TcpOptions& options) noexcept {
  const int fd = socket.native_handle();
  const auto lost_after = std::chrono::duration_cast<std::chrono::seconds>(options.lost_after).count();
  (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, static_cast<int>(std::clamp<long>(lost_after - 1, 1, 100)));
  set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsentBytes);
}

}  // namespace troupe::transport
