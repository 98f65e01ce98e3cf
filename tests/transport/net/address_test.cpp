#include "transport/net/address.hpp"

#include <gtest/gtest.h>

namespace troupe::transport {
namespace {

TEST(TcpAddress, HostAndPortAreParsed) {
  EXPECT_EQ(parse_host_port("node-1:4242")->host, "node-1");
  EXPECT_EQ(parse_host_port("node-1:4242")->port, 4242);
  EXPECT_EQ(parse_host_port("[::1]:0")->host, "::1");
  for (const char* text :
       {"", ":", "host", "host:", ":1", "host:65536", "host:-1", "host:1x", "::1:5", "a b:1", "a/b:1"}) {
    const auto parsed = parse_host_port(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, core::Errc::config);
    EXPECT_NE(parsed.error().message.find(text), std::string::npos);
  }
}

TEST(TcpAddress, RoundTrip) {
  for (const char* host : {"10.0.0.1", "::1", "node-1"}) {
    const TcpAddress address{{host, 4242}, true, "0123abcd", "worker/3"};
    const auto parsed = parse_tcp_address(to_text(address));
    ASSERT_TRUE(parsed) << to_text(address);
    EXPECT_EQ(parsed->at.host, host);
    EXPECT_EQ(parsed->at.port, 4242);
    EXPECT_TRUE(parsed->tls);
    EXPECT_EQ(parsed->incarnation, "0123abcd");
    EXPECT_EQ(parsed->name, "worker/3");
  }
}

TEST(TcpAddress, InvalidAddressesAreRefused) {
  for (const char* text : {"", "tcp:", "ucx:1.2.3.4:5/p1/a", "tcp:1.2.3.4:5", "tcp:1.2.3.4:5/p1", "tcp:1.2.3.4:0/p1/a",
                           "tcp:1.2.3.4:5/x1/a", "tcp:1.2.3.4:5/p/a", "tcp:1.2.3.4:5/p1/a\n"})
    EXPECT_EQ(parse_tcp_address(text).error().code, core::Errc::usage) << text;
}

TEST(TcpAddress, LoopbackAddressesAreRecognised) {
  for (const char* host : {"127.0.0.1", "127.255.0.3", "::1"}) EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"128.0.0.1", "10.0.0.1", "0.0.0.0", "::", "localhost"})
    EXPECT_FALSE(is_loopback(host)) << host;
}

}  // namespace
}  // namespace troupe::transport
