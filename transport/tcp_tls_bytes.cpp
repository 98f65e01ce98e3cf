#include "transport/tcp_tls_bytes.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include "security/openssl.hpp"

namespace troupe::transport {
namespace {

int write(BIO* bio, const char* data, int size) {
  auto& bytes = *static_cast<TlsBytes*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (bytes.full()) {
    BIO_set_retry_write(bio);
    return -1;
  }
  const auto* first = reinterpret_cast<const std::byte*>(data);
  bytes.out.insert(bytes.out.end(), first, first + size);
  return size;
}

int read(BIO* bio, char* data, int size) {
  auto& bytes = *static_cast<TlsBytes*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  for (;;) {
    const ssize_t got = ::recv(bytes.descriptor, data, static_cast<std::size_t>(size), MSG_DONTWAIT);
    if (got > 0) return static_cast<int>(got);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      BIO_set_retry_read(bio);
      return -1;
    }
    bytes.ended = true;
    bytes.error_number = got < 0 ? errno : 0;
    return 0;
  }
}

long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO_METHOD* method() {
  static const std::unique_ptr<BIO_METHOD, security::Freed<BIO_meth_free>> made = [] {
    std::unique_ptr<BIO_METHOD, security::Freed<BIO_meth_free>> m(
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "troupe tcp"));
    if (m) {
      BIO_meth_set_write(m.get(), write);
      BIO_meth_set_read(m.get(), read);
      BIO_meth_set_ctrl(m.get(), control);
    }
    return m;
  }();
  return made.get();
}

}  // namespace

void TlsBytes::drop(std::size_t bytes) {
  sent += bytes;
  if (!empty() && sent < kTlsWriteBytes) return;  // moving what is left each time would cost more than it frees
  out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(sent));
  sent = 0;
}

BIO* make_bio(TlsBytes& bytes) {
  BIO* bio = method() == nullptr ? nullptr : BIO_new(method());
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, &bytes);
  BIO_set_init(bio, 1);
  return bio;
}

}  // namespace troupe::transport
