/// One step of a dialogue at a time, for the time before a connection is a session's: coroutines of the I/O thread over
/// a stream. Nothing here has a deadline of its own: whoever sets one closes the stream, and the step ends with
/// Errc::peer_lost. Errc::corrupt: TLS refused, or what came is no frame of a greeting.
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

/// A connection in its greeting. Shared by its coroutine, its timer and whoever may have to close it.
struct TcpCall {
  explicit TcpCall(tcp::socket socket)
      : stream(std::move(socket)), timer(stream.socket().get_executor()), lookup(stream.socket().get_executor()) {}
  TcpStream stream;
  asio::steady_timer timer;
  asio::steady_timer lookup;  // until the address of a name is known
  bool timed_out = false;
  bool refused = false;     // nobody listens there
  bool no_way = false;      // no route there, or nobody at its end
  bool said_hello = false;  // the other may answer
  void close() noexcept;
};
/// Closes the call when it has not ended by then; replaces an earlier limit.
void limit(const std::shared_ptr<TcpCall>& call, core::Duration delay);
void unlimit(TcpCall& call);

struct GreetingFrame {
  Frame frame;
  std::vector<std::byte> payload;
};

[[nodiscard]] asio::awaitable<core::Result<void>> shake_hands(TcpStream& stream);
/// `frame.length` and the hash are filled in.
[[nodiscard]] asio::awaitable<core::Result<void>> write_frame(TcpStream& stream, Frame frame,
                                                              std::vector<std::byte> payload);
/// Reads one frame and not a byte more.
[[nodiscard]] asio::awaitable<core::Result<GreetingFrame>> read_frame(TcpStream& stream);
/// Ends the sending side and reads until the peer has done so too, so that it gets what was sent last: closing with
/// bytes unread would reset the connection.
[[nodiscard]] asio::awaitable<void> linger(TcpStream& stream);

}  // namespace troupe::transport
