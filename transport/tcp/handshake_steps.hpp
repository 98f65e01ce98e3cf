/// The single steps of a handshake, before a session owns the connection: coroutines of the I/O thread over a stream. They have no
/// deadline of their own: the caller's timer closes the stream, and the step ends with Errc::peer_lost. Errc::corrupt: TLS was
/// refused, or the received bytes are not a handshake frame.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "transport/tcp/asio.hpp"
#include "transport/tcp/protocol/frame.hpp"
#include "transport/tcp/stream.hpp"

namespace troupe::transport {

/// A connection during its handshake. Shared by its coroutine, its timer and the code that may close it.
struct TcpCall {
  explicit TcpCall(tcp::socket socket)
      : stream(std::move(socket)), timer(stream.socket().get_executor()), lookup(stream.socket().get_executor()) {}
  TcpStream stream;
  asio::steady_timer timer;
  asio::steady_timer lookup;  // runs while a host name is resolved
  bool timed_out = false;
  bool refused = false;     // no process listens there
  bool no_way = false;      // no route to the host, or no host
  bool said_hello = false;  // hello is being sent: the other side may answer
  void close() noexcept;
};
/// Closes the call after `delay` if it has not ended; replaces an earlier limit.
void limit(const std::shared_ptr<TcpCall>& call, core::Duration delay);
void unlimit(TcpCall& call);

struct HandshakeFrame {
  Frame frame;
  std::vector<std::byte> payload;
};

[[nodiscard]] asio::awaitable<core::Result<void>> shake_hands(TcpStream& stream);
/// Fills in `frame.length` and the hash.
[[nodiscard]] asio::awaitable<core::Result<void>> write_frame(TcpStream& stream, Frame frame,
                                                              std::vector<std::byte> payload);
/// Reads exactly one frame.
[[nodiscard]] asio::awaitable<core::Result<HandshakeFrame>> read_frame(TcpStream& stream);
/// Shuts down the sending side and reads until the peer has done the same, so that the peer gets the last bytes: closing with
/// unread bytes would reset the connection.
[[nodiscard]] asio::awaitable<void> linger(TcpStream& stream);

}  // namespace troupe::transport
