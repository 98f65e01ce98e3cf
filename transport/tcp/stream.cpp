#include "transport/tcp/stream.hpp"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "transport/security/tls_session.hpp"

namespace troupe::transport {

using security::TlsBytes;

namespace {

constexpr std::size_t kRecordBytes = std::size_t{17} << 10;  // not less than a TLS record: 5 + 16,384 + 256

}  // namespace

TcpStream::TcpStream(tcp::socket socket) : socket_(std::move(socket)) {}
TcpStream::TcpStream(TcpStream&&) noexcept = default;
TcpStream& TcpStream::operator=(TcpStream&&) noexcept = default;
TcpStream::~TcpStream() = default;

core::Result<void> TcpStream::secure(SSL_CTX* context, const std::string& host) {
  auto made = security::make_tls_session(context, socket_.native_handle(),
                                         host.empty() ? security::TlsSide::accepted : security::TlsSide::dialled,
                                         security::TlsWrites::collected);
  if (!made) return tl::unexpected(made.error());
  tls_ = std::move(*made);
  if (host.empty()) return {};
  SSL* ssl = tls_->ssl.get();
  X509_VERIFY_PARAM* expected = SSL_get0_param(ssl);
  if (X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str()) != 1) {
    ERR_clear_error();  // the host is a name, not a number
    X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (X509_VERIFY_PARAM_set1_host(expected, host.c_str(), host.size()) != 1)
      return core::fail(core::Errc::internal, fmt::format("TLS cannot start: {}", security::openssl_reason()));
  }
  return {};
}

TcpStream::Step TcpStream::ended(int error_number) {
  why_ = error_number == 0 ? "the connection ended" : std::generic_category().message(error_number);
  return {State::ended};
}

TcpStream::Step TcpStream::receive(std::span<const iovec> parts) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  for (;;) {
    const ssize_t got = ::recvmsg(socket_.native_handle(), &message, MSG_DONTWAIT);
    if (got > 0) return {State::moved, static_cast<std::size_t>(got)};
    if (got == 0) return ended(0);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {State::wants_read};
    if (errno != EINTR) return ended(errno);
  }
}

TcpStream::Step TcpStream::transmit(std::span<const iovec> parts) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  for (;;) {
    const ssize_t sent = ::sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return {State::moved, static_cast<std::size_t>(sent)};
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {State::wants_write};
    if (errno == EINTR) continue;
    const int error = errno;
    send_error_ = error;
    return ended(error);
  }
}

TcpStream::Step TcpStream::flush() {
  if (!tls_) return {State::moved};
  if (send_error_) return ended(*send_error_);
  TlsBytes& bytes = tls_->bytes;
  while (!bytes.empty()) {
    const iovec part{bytes.front(), bytes.size()};
    const Step step = transmit({&part, 1});
    if (step.state != State::moved) return step;
    bytes.drop(step.bytes);
  }
  return {State::moved};
}

void TcpStream::expect(std::size_t bytes) noexcept {
  // TLS may have read a part of a record already, so as many of the bytes will not come to the socket.
  const std::size_t read = tls_ ? kRecordBytes : 0;
  const int low_water = bytes > read ? static_cast<int>(std::min(bytes - read, kLowWaterBytes)) : 1;
  if (low_water == low_water_) return;
  if (::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVLOWAT, &low_water, sizeof low_water) == 0)
    low_water_ = low_water;
}

bool TcpStream::holds_bytes() const noexcept { return tls_ && !tls_->bytes.empty(); }

/// Translates the failure of an OpenSSL call. The call may have left bytes to send (an alert, an answer).
TcpStream::Step TcpStream::explain(int result) {
  const int error = SSL_get_error(tls_->ssl.get(), result);
  const Step flushed = flush();
  switch (error) {
    case SSL_ERROR_WANT_READ: return flushed.state == State::moved ? Step{State::wants_read} : flushed;
    case SSL_ERROR_WANT_WRITE: return flushed.state == State::moved ? Step{State::wants_write} : flushed;
    case SSL_ERROR_ZERO_RETURN: return ended(0);
    default: break;
  }
  const long verified = SSL_get_verify_result(tls_->ssl.get());
  if (tls_->bytes.ended && verified == X509_V_OK) {
    ERR_clear_error();
    return ended(tls_->bytes.error_number);
  }
  why_ = security::openssl_reason();
  if (verified != X509_V_OK) why_ = fmt::format("certificate refused: {}", X509_verify_cert_error_string(verified));
  return {State::failed};
}

TcpStream::Step TcpStream::shake_hands() {
  if (!tls_) return {State::moved};
  ERR_clear_error();
  const int result = SSL_do_handshake(tls_->ssl.get());
  if (result != 1) return explain(result);
  // From now on several records per system call. Before, a pending connection has only OpenSSL's own small buffer.
  SSL_set_default_read_buffer_len(tls_->ssl.get(), security::kTlsReadBytes);
  SSL_set_read_ahead(tls_->ssl.get(), 1);
  (void)SSL_free_buffers(tls_->ssl.get());  // the next read allocates a larger one
  return flush().state == State::ended ? Step{State::ended} : Step{State::moved};
}

TcpStream::Step TcpStream::read(std::span<const iovec> parts) {
  if (!tls_) return receive(parts);
  std::size_t total = 0;
  for (const iovec& part : parts) {
    for (std::size_t got = 0; got < part.iov_len;) {
      std::size_t moved = 0;
      ERR_clear_error();
      const int result =
          SSL_read_ex(tls_->ssl.get(), static_cast<char*>(part.iov_base) + got, part.iov_len - got, &moved);
      if (result != 1) return total > 0 ? Step{State::moved, total} : explain(result);
      got += moved;
      total += moved;
    }
  }
  return {State::moved, total};
}

TcpStream::Step TcpStream::write(std::span<const iovec> parts) {
  if (!tls_) return transmit(parts);
  if (send_error_) return ended(*send_error_);
  std::size_t total = 0;
  for (const iovec& part : parts) {
    for (std::size_t put = 0; put < part.iov_len;) {
      std::size_t moved = 0;
      ERR_clear_error();
      const int result =
          SSL_write_ex(tls_->ssl.get(), static_cast<const char*>(part.iov_base) + put, part.iov_len - put, &moved);
      put += moved;
      total += moved;
      if (result == 1) continue;
      const bool full = tls_->bytes.full();
      const Step step = explain(result);
      if (step.state == State::wants_write && full && !tls_->bytes.full()) continue;  // the flush made room
      return total > 0 && step.state != State::failed ? Step{State::moved, total} : step;
    }
  }
  // Some bytes may have reached the peer even if the connection ended meanwhile: the next call reports the end.
  (void)flush();
  return {State::moved, total};
}

security::Certificate TcpStream::peer_certificate() const {
  return security::Certificate(tls_ ? SSL_get1_peer_certificate(tls_->ssl.get()) : nullptr);
}

void TcpStream::close() noexcept {
  SystemError ignored;
  socket_.close(ignored);
  if (tls_) tls_->bytes.descriptor = -1;  // another connection may soon get this number
}

}  // namespace troupe::transport
