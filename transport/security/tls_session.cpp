#include "transport/security/tls_session.hpp"

#include <openssl/bio.h>
#include <sys/socket.h>

#include <cerrno>

#include <fmt/format.h>

namespace troupe::security {
namespace {

bool again(int error_number) { return error_number == EAGAIN || error_number == EWOULDBLOCK; }

/// Sends to the socket; -1: no byte was sent.
int send(TlsBytes& bytes, BIO* bio, const char* data, int size) {
  for (;;) {
    const ssize_t sent = ::send(bytes.descriptor, data, static_cast<std::size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return static_cast<int>(sent);
    if (errno == EINTR) continue;
    if (again(errno)) {
      BIO_set_retry_write(bio);
    } else {
      bytes.ended = true;
      bytes.error_number = errno;
    }
    return -1;
  }
}

int write(BIO* bio, const char* data, int size) {
  auto& bytes = *static_cast<TlsBytes*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (bytes.writes == TlsWrites::directly) return send(bytes, bio, data, size);
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
    if (got < 0 && again(errno)) {
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
  static const std::unique_ptr<BIO_METHOD, Freed<BIO_meth_free>> made = [] {
    std::unique_ptr<BIO_METHOD, Freed<BIO_meth_free>> m(
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "troupe"));
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
  if (!empty() && sent < kTlsWriteBytes) return;  // moving the rest each time would cost more than it frees
  out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(sent));
  sent = 0;
}

core::Result<std::unique_ptr<TlsSession>> make_tls_session(SSL_CTX* context, int descriptor, TlsSide side,
                                                           TlsWrites writes) {
  auto session = std::make_unique<TlsSession>();
  session->bytes.descriptor = descriptor;
  session->bytes.writes = writes;
  session->ssl.reset(SSL_new(context));
  BIO* bio = session->ssl && method() != nullptr ? BIO_new(method()) : nullptr;
  if (bio == nullptr) return core::fail(core::Errc::internal, fmt::format("TLS cannot start: {}", openssl_reason()));
  BIO_set_data(bio, &session->bytes);
  BIO_set_init(bio, 1);
  SSL* ssl = session->ssl.get();
  SSL_set_bio(ssl, bio, bio);
  SSL_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (side == TlsSide::dialled)
    SSL_set_connect_state(ssl);
  else
    SSL_set_accept_state(ssl);
  return session;
}

}  // namespace troupe::security
