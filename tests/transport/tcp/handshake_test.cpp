// Steps of the tcp handshake that no endpoint shows.
#include "transport/tcp/handshake.hpp"

#include <stdexcept>
#include <vector>

#include "peers.hpp"
#include "transport/tcp/lookup.hpp"

namespace troupe::transport::testing {
namespace {

using namespace std::chrono_literals;

TEST(TcpHandshake, HandshakeThatThrowsIsAbandoned) {
  const RawSocket listening(listen_on("127.0.0.1", 0));
  std::vector<core::Error> failures;
  asio::io_context io;
  TcpHandshake::Setup setup;
  setup.self = parse_tcp_address("tcp:127.0.0.1:1/p0/a").value();
  setup.window = window_of({});
  setup.received = [](Peer) -> std::uint64_t { throw std::runtime_error("memory ran out"); };
  setup.failed = [&](Peer, const core::Error& why) { failures.push_back(why); };
  TcpHandshake handshake(io, setup);
  handshake.connect(Peer{0}, parse_tcp_address(RawPeer::own_address(listening.descriptor())).value());
  io.run_for(30s);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].code, core::Errc::internal);
  EXPECT_EQ(failures[0].message, "memory ran out");
}

core::Result<TcpEndpoints> addresses_of(const std::string& host) {
  asio::io_context io;
  core::Result<TcpEndpoints> found = core::fail(core::Errc::internal, "no answer");
  const auto call = std::make_shared<TcpCall>(tcp::socket(io));
  const HostPort at{host, 4242};
  asio::co_spawn(io, look_up(call, at, 30s),
                 [&](const std::exception_ptr&, core::Result<TcpEndpoints> result) { found = std::move(result); });
  io.run_for(60s);
  return found;
}

TEST(TcpLookup, NumbersAndNamesAreResolved) {
  // Resolvers take 127.1 for 127.0.0.1, although it is not the numeric form.
  for (const char* host : {"127.0.0.1", "127.1", "::1"}) {
    const auto found = addresses_of(host);
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_FALSE(found->empty());
    EXPECT_TRUE(found->front().address().is_loopback()) << host;
    EXPECT_EQ(found->front().port(), 4242);
  }
}

TEST(TcpLookup, CloseDoesNotWaitForALookup) {
  asio::io_context io;
  const auto call = std::make_shared<TcpCall>(tcp::socket(io));
  bool ended = false;
  const HostPort at{"no-such-host.invalid", 4242};
  asio::co_spawn(io, look_up(call, at, 30s),
                 [&](const std::exception_ptr&, const core::Result<TcpEndpoints>& found) { ended = !found; });
  asio::post(io, [call] { call->close(); });
  io.run_for(60s);
  EXPECT_TRUE(ended);
}

TEST(TcpLookup, MembersConnectByName) {
  Party a = tcp_party("a", {.advertise = "127.1"});
  Party b = tcp_party("b", {.advertise = "127.1"});
  const Pair pair = join(a, b);
  exchange(a, pair.b_at_a, b, pair.a_at_b);
}

}  // namespace
}  // namespace troupe::transport::testing
