// Bytes over one connection, and what each side knows about them when it breaks.
#include "transport/tcp/stream.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <ctime>
#include <thread>

#include <gtest/gtest.h>

#include "certificates.hpp"
#include "core/random.hpp"
#include "transport/security/tls_context.hpp"

namespace troupe::transport::testing {
namespace {

constexpr int kStreamPatienceMs = 10'000;

/// Waits until the stream can continue after a step that moved nothing.
bool wait(TcpStream& stream, TcpStream::State state) {
  pollfd ready{.fd = stream.socket().native_handle(),
               .events = static_cast<short>(state == TcpStream::State::wants_read ? POLLIN : POLLOUT),
               .revents = 0};
  return ::poll(&ready, 1, kStreamPatienceMs) == 1;
}

bool shake_hands_of(TcpStream& stream) {
  for (;;) {
    const auto step = stream.shake_hands();
    if (step.state == TcpStream::State::moved) break;
    const bool waits = step.state == TcpStream::State::wants_read || step.state == TcpStream::State::wants_write;
    if (!waits || !wait(stream, step.state)) return false;
  }
  while (stream.holds_bytes()) {
    if (stream.flush().state != TcpStream::State::moved && !wait(stream, TcpStream::State::wants_write)) return false;
  }
  return true;
}

/// Reads at least `most` bytes and resets the connection. Returns the number of bytes read.
std::size_t read_and_reset(TcpStream& stream, std::size_t most) {
  std::vector<std::byte> bytes(20'000);
  const iovec part{bytes.data(), bytes.size()};
  std::size_t got = 0;
  while (got < most) {
    const auto step = stream.read({&part, 1});
    if (step.state == TcpStream::State::moved) {
      got += step.bytes;
    } else if (step.state != TcpStream::State::wants_read || !wait(stream, step.state)) {
      ADD_FAILURE() << stream.why();
      break;
    }
  }
  stream.socket().set_option(asio::socket_base::linger(true, 0));
  stream.close();
  return got;
}

class Streams : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(, Streams, ::testing::Bool(), [](const auto& info) { return info.param ? "Tls" : "Plain"; });

// The writer must count every byte that the peer may have read; else a correct peer would look faulty.
TEST_P(Streams, EveryByteThatThePeerHasIsCountedAsMoved) {
  asio::io_context io;
  tcp::acceptor acceptor(io, {asio::ip::make_address("127.0.0.1"), 0});
  const auto context = security::make_tls_context(good_certificate(), std::time(nullptr)).value();
  core::Random random(1, core::Purpose::test, 0);
  const std::vector<std::byte> bytes(std::size_t{8} << 20);
  int broken_early = 0;
  for (int round = 0; round < 400; ++round) {
    tcp::socket calling(io);
    calling.connect(acceptor.local_endpoint());
    TcpStream writer(std::move(calling));
    TcpStream reader(acceptor.accept());
    for (TcpStream* stream : {&writer, &reader}) {
      stream->socket().non_blocking(true);
      if (GetParam()) {
        ASSERT_TRUE(stream->secure(context.get(), stream == &writer ? "127.0.0.1" : ""));
      }
    }
    const auto most = 1 + random.below(std::uint64_t{1} << (10 + random.below(13)));
    std::size_t read = 0;
    std::thread peer([&] {
      if (shake_hands_of(reader)) read = read_and_reset(reader, most);
    });
    std::size_t moved = 0;
    if (shake_hands_of(writer)) {
      while (moved < bytes.size()) {
        const std::size_t length = std::min(bytes.size() - moved, std::size_t{1} << 18);
        const iovec part{const_cast<std::byte*>(bytes.data()) + moved, length};
        const auto step = writer.write({&part, 1});
        if (step.state == TcpStream::State::moved)
          moved += step.bytes;
        else if (step.state == TcpStream::State::ended || !wait(writer, step.state))
          break;
      }
    } else {
      ADD_FAILURE() << writer.why();
      writer.close();
    }
    peer.join();
    broken_early += moved < bytes.size() ? 1 : 0;
    ASSERT_GE(moved, read) << "round " << round;
  }
  EXPECT_GT(broken_early, 100);  // else the test has tried nothing
}

}  // namespace
}  // namespace troupe::transport::testing
