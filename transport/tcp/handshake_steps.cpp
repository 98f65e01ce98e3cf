#include "transport/tcp/handshake_steps.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "transport/common/wire_hash.hpp"

namespace troupe::transport {
namespace {

/// Waits until the socket is ready for the step. Errc::peer_lost or corrupt: the step has failed.
asio::awaitable<core::Result<void>> wait_for(TcpStream& stream, TcpStream::State state) {
  if (state == TcpStream::State::ended) co_return core::fail(core::Errc::peer_lost, stream.why());
  if (state == TcpStream::State::failed)
    co_return core::fail(core::Errc::corrupt, fmt::format("TLS: {}", stream.why()));
  const auto what = state == TcpStream::State::wants_read ? tcp::socket::wait_read : tcp::socket::wait_write;
  SystemError error;
  co_await stream.socket().async_wait(what, asio::redirect_error(asio::use_awaitable, error));
  if (error || !stream.socket().is_open()) co_return core::fail(core::Errc::peer_lost, "the connection was closed");
  co_return core::Result<void>{};
}

asio::awaitable<core::Result<void>> read_exactly(TcpStream& stream, std::byte* to, std::size_t size) {
  while (size > 0) {
    const iovec part{to, size};
    const auto step = stream.read({&part, 1});
    if (step.state == TcpStream::State::moved) {
      to += step.bytes;
      size -= step.bytes;
      continue;
    }
    const core::Result<void> waited = co_await wait_for(stream, step.state);
    if (!waited) co_return waited;
  }
  co_return core::Result<void>{};
}

bool is_handshake_frame(FrameType type) {
  return type == FrameType::hello || type == FrameType::welcome || type == FrameType::ready ||
         type == FrameType::refuse || type == FrameType::bye;
}

}  // namespace

void TcpCall::close() noexcept {
  timer.cancel();
  lookup.cancel();
  stream.close();
}

void limit(const std::shared_ptr<TcpCall>& call, core::Duration delay) {
  call->timer.expires_after(delay);
  call->timer.async_wait([call](const SystemError& error) {
    if (error || call->timer.expiry() > asio::steady_timer::clock_type::now()) return;  // cancelled or replaced
    call->timed_out = true;
    call->stream.close();
  });
}

void unlimit(TcpCall& call) {
  call.timer.expires_at(asio::steady_timer::time_point::max());  // a handler that is already queued sees it too
}

asio::awaitable<core::Result<void>> shake_hands(TcpStream& stream) {
  for (;;) {
    const auto step = stream.shake_hands();
    if (step.state == TcpStream::State::moved) co_return core::Result<void>{};
    const core::Result<void> waited = co_await wait_for(stream, step.state);
    if (!waited) co_return waited;
  }
}

asio::awaitable<core::Result<void>> write_frame(TcpStream& stream, Frame frame, std::vector<std::byte> payload) {
  frame.length = static_cast<std::uint32_t>(payload.size());
  frame.payload_hash = wire_hash(payload);
  const FrameBytes header = encode(frame);
  payload.insert(payload.begin(), header.begin(), header.end());
  for (std::size_t sent = 0; sent < payload.size() || stream.holds_bytes();) {
    const iovec part{payload.data() + sent, payload.size() - sent};
    const auto step = sent < payload.size() ? stream.write({&part, 1}) : stream.flush();
    if (step.state == TcpStream::State::moved) {
      sent += step.bytes;
      continue;
    }
    const core::Result<void> waited = co_await wait_for(stream, step.state);
    if (!waited) co_return waited;
  }
  co_return core::Result<void>{};
}

asio::awaitable<core::Result<HandshakeFrame>> read_frame(TcpStream& stream) {
  FrameBytes header;
  core::Result<void> got = co_await read_exactly(stream, header.data(), header.size());
  if (!got) co_return tl::unexpected(got.error());
  const auto frame = decode(header.data());
  if (!frame) co_return tl::unexpected(frame.error());
  if (!is_handshake_frame(frame->type))
    co_return core::fail(core::Errc::corrupt, "a frame that is not part of the handshake");
  HandshakeFrame read{*frame, std::vector<std::byte>(frame->length)};
  got = co_await read_exactly(stream, read.payload.data(), read.payload.size());
  if (!got) co_return tl::unexpected(got.error());
  if (wire_hash(read.payload) != frame->payload_hash)
    co_return core::fail(core::Errc::corrupt, "a damaged handshake frame");
  co_return read;
}

asio::awaitable<void> linger(TcpStream& stream) {
  SystemError error;
  stream.socket().shutdown(tcp::socket::shutdown_send, error);
  std::array<std::byte, 4096> ignored;
  while (!error) {
    co_await stream.socket().async_wait(tcp::socket::wait_read, asio::redirect_error(asio::use_awaitable, error));
    if (error || ::recv(stream.socket().native_handle(), ignored.data(), ignored.size(), MSG_DONTWAIT) <= 0) co_return;
  }
}

}  // namespace troupe::transport
