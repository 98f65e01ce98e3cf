// For LD_PRELOAD: connect(2) does not reach the IPv4 address in TROUPE_TEST_UNREACHABLE, as behind a firewall.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

extern "C" [[gnu::visibility("default")]] int connect(int socket, const sockaddr* address, socklen_t length) {
  using Connect = int (*)(int, const sockaddr*, socklen_t);
  static const auto next = reinterpret_cast<Connect>(::dlsym(RTLD_NEXT, "connect"));
  const char* const host = std::getenv("TROUPE_TEST_UNREACHABLE");
  sockaddr_in to{};
  if (host != nullptr && address->sa_family == AF_INET && length >= sizeof to) {
    std::memcpy(&to, address, sizeof to);
    if (to.sin_addr.s_addr == ::inet_addr(host)) {
      errno = EHOSTUNREACH;
      return -1;
    }
  }
  return next(socket, address, length);
}
