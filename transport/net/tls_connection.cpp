#include "transport/net/tls_connection.hpp"

#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "transport/security/tls_context.hpp"

namespace troupe::transport {
namespace {

bool again(int error_number) { return error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINTR; }

}  // namespace

core::Result<TlsConnection> TlsConnection::create(core::FileDescriptor socket, SSL_CTX* tls, security::TlsSide side) {
  TlsConnection wire;
  wire.fd_ = socket.get();
  wire.socket_ = std::move(socket);
  wire.side_ = side;
  if (tls == nullptr) return wire;
  auto session = security::make_tls_session(tls, wire.fd_, side, security::TlsWrites::directly);
  if (!session) return tl::unexpected(session.error());
  wire.tls_ = std::move(*session);
  return wire;
}

ConnectionState TlsConnection::hung_up(int error_number) {
  error_ = {core::Errc::peer_lost,
            error_number == 0 ? "the other end closed the connection" : std::strerror(error_number)};
  return ConnectionState::ended;
}

ConnectionState TlsConnection::judge(int result) {
  switch (SSL_get_error(tls_->ssl.get(), result)) {
    case SSL_ERROR_WANT_READ: return ConnectionState::wants_read;
    case SSL_ERROR_WANT_WRITE: return ConnectionState::wants_write;
    case SSL_ERROR_ZERO_RETURN: return hung_up(0);
    default: break;
  }
  const long verified = SSL_get_verify_result(tls_->ssl.get());
  if (tls_->bytes.ended && verified == X509_V_OK) {
    ERR_clear_error();
    return hung_up(tls_->bytes.error_number);
  }
  std::string reason = security::openssl_reason();
  error_ = {core::Errc::config, verified == X509_V_OK ? std::move(reason) : X509_verify_cert_error_string(verified)};
  return ConnectionState::ended;
}

ConnectionState TlsConnection::shake_hands() {
  if (!tls_) return ConnectionState::ready;
  ERR_clear_error();  // an older error of this thread must not be attributed to this call
  const int result = SSL_do_handshake(tls_->ssl.get());
  return result == 1 ? ConnectionState::ready : judge(result);
}

ConnectionMove TlsConnection::read(void* to, std::size_t size) {
  if (tls_) {
    ERR_clear_error();
    const int got = SSL_read(tls_->ssl.get(), to, static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
    if (got > 0) return {ConnectionState::ready, static_cast<std::size_t>(got)};
    return {judge(got), 0};
  }
  const ssize_t got = ::recv(fd_, to, size, MSG_DONTWAIT);
  if (got > 0) return {ConnectionState::ready, static_cast<std::size_t>(got)};
  if (got < 0 && again(errno)) return {ConnectionState::wants_read, 0};
  return {hung_up(got == 0 ? 0 : errno), 0};
}

ConnectionMove TlsConnection::write(const void* from, std::size_t size) {
  if (size == 0) return {ConnectionState::ready, 0};
  if (tls_) {
    ERR_clear_error();
    const int sent = SSL_write(tls_->ssl.get(), from, static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
    if (sent > 0) return {ConnectionState::ready, static_cast<std::size_t>(sent)};
    return {judge(sent), 0};
  }
  const ssize_t sent = ::send(fd_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return {ConnectionState::ready, static_cast<std::size_t>(sent)};
  if (again(errno)) return {ConnectionState::wants_write, 0};
  return {hung_up(errno), 0};
}

std::size_t TlsConnection::pending() const noexcept {
  return tls_ ? static_cast<std::size_t>(SSL_pending(tls_->ssl.get())) : 0;
}

bool TlsConnection::names(const std::string& host) const {
  if (!tls_) return true;
  const security::Certificate shown(SSL_get1_peer_certificate(tls_->ssl.get()));
  return security::names_host(shown.get(), host);
}

std::string TlsConnection::certificate() const {
  if (!tls_) return {};
  const security::Certificate shown(SSL_get1_peer_certificate(tls_->ssl.get()));
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  if (!shown || X509_digest(shown.get(), EVP_sha256(), reinterpret_cast<unsigned char*>(digest.data()), &size) != 1)
    return {};
  digest.resize(size);
  return digest;
}

}  // namespace troupe::transport
