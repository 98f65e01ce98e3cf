// Admission: a peer needs a certificate and an introduction, and rejected connections do not disturb members.
#include <poll.h>

#include "peers.hpp"
#include "transport/common/wire_hash.hpp"
#include "transport/net/refusal.hpp"
#include "transport/security/tls_context.hpp"

namespace troupe::transport::testing {
namespace {

std::uint16_t port_of(const Party& party) { return parse_tcp_address(party->address().text)->at.port; }

/// A TLS client made by hand: shows what becomes of its handshake with `files` as its certificate (empty: none).
class RawTls {
 public:
  RawTls(std::uint16_t port, const security::TlsFiles& files) : socket_(RawSocket::connect("127.0.0.1", port)) {
    context_.reset(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
    if (!files.empty()) {
      EXPECT_EQ(SSL_CTX_use_certificate_file(context_.get(), files.certificate.c_str(), SSL_FILETYPE_PEM), 1);
      EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context_.get(), files.key.c_str(), SSL_FILETYPE_PEM), 1);
    }
    ssl_.reset(SSL_new(context_.get()), SSL_free);
    SSL_set_fd(ssl_.get(), socket_.descriptor());
  }
  /// Performs the handshake, sends `hello`, and returns whether the other side closed the connection without a reply.
  bool is_refused(const Bytes& hello) {
    if (SSL_connect(ssl_.get()) != 1) return true;
    Frame frame{.type = FrameType::hello, .length = static_cast<std::uint32_t>(hello.size())};
    frame.payload_hash = wire_hash(hello);
    const FrameBytes header = encode(frame);
    SSL_write(ssl_.get(), header.data(), static_cast<int>(header.size()));
    SSL_write(ssl_.get(), hello.data(), static_cast<int>(hello.size()));
    std::byte answer[1];
    return SSL_read(ssl_.get(), answer, 1) <= 0;
  }

 private:
  RawSocket socket_;
  std::shared_ptr<SSL_CTX> context_;
  std::shared_ptr<SSL> ssl_;
};

/// A connected pair that must keep working whatever other connections arrive.
struct Undisturbed {
  explicit Undisturbed(TcpOptions options) : a(tcp_party("a", options)), b(tcp_party("b", options)), pair(join(a, b)) {}
  void expect_works() { exchange(a, pair.b_at_a, b, pair.a_at_b, 100'000); }
  Party a, b;
  Pair pair;
};

TEST(TcpAdmission, InvalidCertificatesAreRefused) {
  Refusals refusals;
  TcpOptions options{.tls = good_certificate(), .on_refused = refusals.hook()};
  Undisturbed members(options);
  const Bytes hello = RawPeer::hello("tcp:127.0.0.1:1/s0/raw", members.a->address().text);
  const struct {
    security::TlsFiles files;
    const char* why;
  } cases[] = {{{}, "did not return a certificate"},
               {foreign_certificate(), "certificate refused"},
               {expired_certificate(), "expired"}};
  std::size_t count = 0;
  for (const auto& c : cases) {
    RawTls client(port_of(members.a), c.files);
    EXPECT_TRUE(client.is_refused(hello)) << c.why;
    const auto all = refusals.wait_for(++count);
    EXPECT_NE(all.back().why.find(c.why), std::string::npos) << all.back().why;
    EXPECT_TRUE(all.back().from.starts_with("127.0.0.1:"));
    members.expect_works();
  }
}

TEST(TcpAdmission, CertificateForAnotherHostIsRefused) {
  Refusals refusals;
  Party a = tcp_party("a", {.tls = good_certificate(), .on_refused = refusals.hook()});
  RawTls client(port_of(a), good_certificate());
  (void)client.is_refused(RawPeer::hello("tcp:192.0.2.1:1/s0/raw", a->address().text));
  EXPECT_NE(refusals.wait_for(1).back().why.find("192.0.2.1"), std::string::npos);
}

TEST(TcpAdmission, TheCertificateMustNameTheDialledHost) {
  // 127.0.0.2 is this host, but its certificate names 127.0.0.1 only.
  Party a = tcp_party("a", {.tls = good_certificate()});
  Party b = tcp_party("b", {.listen = "127.0.0.2:0", .tls = good_certificate()});
  const Connection connection = a->connect(b->address()).value();
  a.expect_failed(connection.established, core::Errc::config, "certificate");
}

TEST(TcpAdmission, GarbageIsRejectedAndReported) {
  Refusals refusals;
  for (const bool tls : {false, true}) {
    TcpOptions options{.on_refused = refusals.hook()};
    if (tls) options.tls = good_certificate();
    Undisturbed members(options);
    const std::size_t before = tls ? 3 : 0;
    const std::string http = "GET / HTTP/1.1\r\nHost: troupe\r\nAccept: everything that there is, please\r\n\r\n";
    const Bytes noise = pattern(5000, 1);
    const Bytes absurd = [] {
      const FrameBytes bytes = encode({.type = FrameType::hello, .length = 0xfffffff0});
      return Bytes(bytes.begin(), bytes.end());
    }();
    std::size_t count = before;
    for (const auto& [data, size] : {std::pair{static_cast<const void*>(http.data()), http.size()},
                                     {static_cast<const void*>(noise.data()), noise.size()},
                                     {static_cast<const void*>(absurd.data()), absurd.size()}}) {
      const RawSocket client = RawSocket::connect("127.0.0.1", port_of(members.a));
      client.write(data, size);
      EXPECT_TRUE(client.ends());
      EXPECT_FALSE(refusals.wait_for(++count).back().why.empty());
      members.expect_works();
    }
  }
}

TEST(TcpAdmission, TheNumberOfSilentConnectionsIsLimited) {
  Refusals refusals;
  TcpOptions options{.max_pending = 4, .on_refused = refusals.hook()};
  Undisturbed members(options);
  std::vector<RawSocket> silent;
  for (int i = 0; i < 50; ++i) silent.push_back(RawSocket::connect("127.0.0.1", port_of(members.a)));
  for (std::size_t i = 0; i < 46; ++i) EXPECT_TRUE(silent[i].ends()) << i;  // all but four
  EXPECT_NE(refusals.wait_for(1).front().why.find("newer connections are pending"), std::string::npos);
  members.expect_works();
  Party c = tcp_party("c", options);
  const Pair pair = join(members.a, c);
  exchange(members.a, pair.b_at_a, c, pair.a_at_b);
}

TEST(TcpAdmission, SilentConnectionIsClosed) {
  Refusals refusals;
  TcpOptions options{.on_refused = refusals.hook()};
  options.heartbeat = std::chrono::milliseconds{10};
  options.lost_after = std::chrono::milliseconds{50};
  Party a = tcp_party("a", options);
  const RawSocket silent = RawSocket::connect("127.0.0.1", port_of(a));
  const RawSocket slow = RawSocket::connect("127.0.0.1", port_of(a));
  slow.write("Trp", 3);
  EXPECT_TRUE(silent.ends());
  EXPECT_TRUE(slow.ends());
  EXPECT_NE(refusals.wait_for(2).back().why.find("in time"), std::string::npos);
}

TEST(TcpAdmission, ConnectionForAnotherMemberIsRefusedWithAReason) {
  Refusals refusals;
  Party a = tcp_party("a", {.on_refused = refusals.hook()});
  RawSocket client = RawSocket::connect("127.0.0.1", port_of(a));
  std::string other = a->address().text;
  other[other.find("/p") + 2] ^= 1;  // another incarnation
  client.write({.type = FrameType::hello}, RawPeer::hello("tcp:127.0.0.1:1/p0/raw", other));
  Bytes told;
  const Frame answer = client.read_frame(&told);
  EXPECT_EQ(answer.type, FrameType::refuse);
  EXPECT_NE(refusals.wait_for(1).back().why.find(other), std::string::npos);
  // Only an introduced peer learns the incarnation of the endpoint that is here.
  const std::string text = printable_text(told);
  EXPECT_NE(text.find("another incarnation"), std::string::npos) << text;
  EXPECT_EQ(text.find(parse_tcp_address(a->address().text)->incarnation), std::string::npos) << text;
  // An endpoint that dials such an address gives up at once.
  Party b = tcp_party("b");
  const Connection connection = b->connect({other}).value();
  b.expect_failed(connection.established, core::Errc::peer_lost, other);
}

// A peer without an introduction sends hello and then a message: it stays a pending connection.
TEST(TcpAdmission, ConnectionsWithoutAnIntroductionAreRefused) {
  Undisturbed members({});
  const RawSocket listening(listen_on("127.0.0.1", 0));
  const RawSocket client = RawSocket::connect("127.0.0.1", port_of(members.a));
  const std::string mine = RawPeer::own_address(listening.descriptor());
  client.write({.type = FrameType::hello}, RawPeer::hello(mine, members.a->address().text));
  client.write({.type = FrameType::offer, .message = 1, .tag = 1, .size = 3}, Bytes(3));
  EXPECT_TRUE(client.ends());  // it breaks the protocol: no welcome came
  members.expect_works();
}

TEST(TcpAdmission, AConnectionWaitsForItsIntroduction) {
  Party a = tcp_party("a", {.listen = "127.0.0.2:0"});
  const RawSocket listening(listen_on("127.0.0.1", 0));
  RawSocket client = RawSocket::connect("127.0.0.2", port_of(a));
  const std::string mine = RawPeer::own_address(listening.descriptor());
  client.write({.type = FrameType::hello}, RawPeer::hello(mine, a->address().text));
  const Connection connection = a->connect({mine}).value();
  EXPECT_EQ(client.read_frame().type, FrameType::welcome);
  EXPECT_EQ(a.untaken(), 0u);  // established once the caller has confirmed
  client.write({.type = FrameType::ready});
  a.expect_done(connection.established, 0);
}

}  // namespace
}  // namespace troupe::transport::testing
