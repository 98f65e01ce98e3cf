#include "actors/wire.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "security/tls_context.hpp"

namespace troupe::actors {
namespace {

bool again(int error_number) { return error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINTR; }

// OpenSSL's own socket BIO writes without MSG_NOSIGNAL, and a peer that is gone would end the process.
int descriptor_of(BIO* bio) { return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio))); }

int bio_write(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent = ::send(descriptor_of(bio), data, static_cast<std::size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && again(errno)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int bio_read(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t got = ::recv(descriptor_of(bio), data, static_cast<std::size_t>(size), MSG_DONTWAIT);
  if (got < 0 && again(errno)) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

long bio_control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO* make_bio(int fd) {
  static const std::unique_ptr<BIO_METHOD, security::Freed<BIO_meth_free>> method = [] {
    std::unique_ptr<BIO_METHOD, security::Freed<BIO_meth_free>> made(
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "troupe wire"));
    if (made) {
      BIO_meth_set_write(made.get(), bio_write);
      BIO_meth_set_read(made.get(), bio_read);
      BIO_meth_set_ctrl(made.get(), bio_control);
    }
    return made;
  }();
  BIO* bio = method ? BIO_new(method.get()) : nullptr;
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  BIO_set_init(bio, 1);
  return bio;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

int Descriptor::release() noexcept { return std::exchange(fd_, -1); }

core::Result<Wire> Wire::create(Descriptor socket, SSL_CTX* tls, WireSide side) {
  Wire wire;
  wire.fd_ = socket.get();
  wire.socket_ = std::move(socket);
  wire.side_ = side;
  if (tls == nullptr) return wire;
  wire.tls_.reset(SSL_new(tls));
  BIO* bio = wire.tls_ ? make_bio(wire.fd_) : nullptr;
  if (bio == nullptr) return core::fail(core::Errc::no_space, "TLS: memory ran out");
  SSL_set_bio(wire.tls_.get(), bio, bio);
  SSL_set_mode(wire.tls_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (side == WireSide::dialled)
    SSL_set_connect_state(wire.tls_.get());
  else
    SSL_set_accept_state(wire.tls_.get());
  return wire;
}

WireState Wire::hung_up(int error_number) {
  error_ = {core::Errc::peer_lost,
            error_number == 0 ? "the other end closed the connection" : std::strerror(error_number)};
  return WireState::ended;
}

WireState Wire::judge(int result) {
  switch (SSL_get_error(tls_.get(), result)) {
    case SSL_ERROR_WANT_READ: return WireState::wants_read;
    case SSL_ERROR_WANT_WRITE: return WireState::wants_write;
    case SSL_ERROR_ZERO_RETURN: return hung_up(0);
    case SSL_ERROR_SYSCALL: return hung_up(errno);
    default: break;
  }
  const long verified = SSL_get_verify_result(tls_.get());
  const bool cut = ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
  std::string reason = security::openssl_reason();
  if (cut) return hung_up(0);
  error_ = {core::Errc::config, verified == X509_V_OK ? std::move(reason) : X509_verify_cert_error_string(verified)};
  return WireState::ended;
}

WireState Wire::shake_hands() {
  if (!tls_) return WireState::ready;
  ERR_clear_error();  // or a failure of someone else's would be taken for this one's
  errno = 0;
  const int result = SSL_do_handshake(tls_.get());
  return result == 1 ? WireState::ready : judge(result);
}

WireMove Wire::read(void* to, std::size_t size) {
  if (tls_) {
    ERR_clear_error();
    errno = 0;
    const int got = SSL_read(tls_.get(), to, static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
    if (got > 0) return {WireState::ready, static_cast<std::size_t>(got)};
    return {judge(got), 0};
  }
  const ssize_t got = ::recv(fd_, to, size, MSG_DONTWAIT);
  if (got > 0) return {WireState::ready, static_cast<std::size_t>(got)};
  if (got < 0 && again(errno)) return {WireState::wants_read, 0};
  return {hung_up(got == 0 ? 0 : errno), 0};
}

WireMove Wire::write(const void* from, std::size_t size) {
  if (size == 0) return {WireState::ready, 0};
  if (tls_) {
    ERR_clear_error();
    errno = 0;
    const int sent = SSL_write(tls_.get(), from, static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
    if (sent > 0) return {WireState::ready, static_cast<std::size_t>(sent)};
    return {judge(sent), 0};
  }
  const ssize_t sent = ::send(fd_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return {WireState::ready, static_cast<std::size_t>(sent)};
  if (again(errno)) return {WireState::wants_write, 0};
  return {hung_up(errno), 0};
}

std::size_t Wire::pending() const noexcept { return tls_ ? static_cast<std::size_t>(SSL_pending(tls_.get())) : 0; }

bool Wire::names(const std::string& host) const {
  if (!tls_) return true;
  const security::Certificate shown(SSL_get1_peer_certificate(tls_.get()));
  return security::names_host(shown.get(), host);
}

}  // namespace troupe::actors
