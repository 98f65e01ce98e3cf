// Options and addresses that the tcp endpoint refuses: one clear line each.
#include <fstream>

#include "peers.hpp"

namespace troupe::transport::testing {
namespace {

core::Error refusal(const TcpOptions& options) {
  static const core::SteadyClock clock;
  const auto made = make_endpoint("tcp", {.completions = CompletionQueue::create(clock).value(), .tcp = options});
  if (made) {
    ADD_FAILURE() << "was made";
    return {};
  }
  EXPECT_EQ(made.error().code, core::Errc::config) << made.error().message;
  EXPECT_EQ(made.error().message.find('\n'), std::string::npos);
  return made.error();
}

void expect_words(const core::Error& error, std::initializer_list<const char*> words) {
  for (const char* word : words) EXPECT_NE(error.message.find(word), std::string::npos) << error.message;
}

TEST(TcpOptions, IncompleteTlsFilesNameTheMissingOne) {
  const security::TlsFiles& good = good_certificate();
  expect_words(refusal({.tls = {.ca = good.ca}}), {"TLS", "certificate", "key", "not"});
  expect_words(refusal({.tls = {.ca = good.ca, .certificate = good.certificate}}), {"TLS", "not this node's key"});
  expect_words(refusal({.tls = {.certificate = good.certificate, .key = good.key}}),
               {"TLS", "not the authority's certificate"});
}

TEST(TcpOptions, OffLoopbackNeedsTls) {
  expect_words(refusal({.listen = "0.0.0.0:0"}), {"TLS", "0.0.0.0"});
  expect_words(refusal({.listen = "[::]:0"}), {"TLS"});
  Party a = tcp_party("a");
  const auto far = a->connect({"tcp:192.0.2.1:4242/p0/b"});
  ASSERT_FALSE(far);
  EXPECT_EQ(far.error().code, core::Errc::config);
  expect_words(far.error(), {"TLS", "192.0.2.1"});
}

TEST(TcpOptions, AWildcardNeedsAnAddressForOthers) {
  expect_words(refusal({.listen = "0.0.0.0:0", .tls = good_certificate()}), {"advertise"});
  Party a = tcp_party("a", {.listen = "0.0.0.0:0", .advertise = "127.0.0.1", .tls = good_certificate()});
  Party b = tcp_party("b", {.tls = good_certificate()});
  const Pair pair = join(a, b);
  exchange(a, pair.b_at_a, b, pair.a_at_b);
}

TEST(TcpOptions, ListenErrorsNameTheAddress) {
  Party a = tcp_party("a");
  const auto port = std::to_string(parse_tcp_address(a->address().text)->at.port);
  expect_words(refusal({.listen = "127.0.0.1:" + port}), {"127.0.0.1:", port.c_str(), "in use", "another port"});
  expect_words(refusal({.listen = "no-such-host.invalid:0"}), {"no-such-host.invalid"});
  expect_words(refusal({.listen = "localhost"}), {"localhost", "host:port"});
}

TEST(TcpOptions, InvalidTlsFilesAreRefused) {
  const security::TlsFiles good = good_certificate(), expired = expired_certificate(), foreign = foreign_certificate();
  expect_words(refusal({.tls = expired}), {"TLS", expired.certificate.c_str(), "expired", "troupe certs"});
  expect_words(refusal({.tls = {good.ca, good.certificate, expired.key}}),
               {"TLS", "does not belong", expired.key.c_str()});
  expect_words(refusal({.tls = foreign}), {"TLS", "not signed", foreign.certificate.c_str()});
  expect_words(refusal({.tls = {good.ca, good.certificate, good.key + ".missing"}}),
               {"TLS", ".missing", "No such file"});
  expect_words(refusal({.tls = {good.ca, good.key, good.key}}), {"TLS", "no certificate", good.key.c_str()});
}

TEST(TcpOptions, PlainAndTlsDoNotConnect) {
  Party plain = tcp_party("plain");
  Party secure = tcp_party("secure", {.tls = good_certificate()});
  for (const auto& connection : {plain->connect(secure->address()), secure->connect(plain->address())}) {
    ASSERT_FALSE(connection);
    EXPECT_EQ(connection.error().code, core::Errc::config);
    expect_words(connection.error(), {"TLS", "plain TCP"});
  }
}

TEST(TcpOptions, CapabilitiesSayWhetherBytesAreSecret) {
  EXPECT_FALSE(tcp_party("a")->capabilities().encrypted);
  EXPECT_FALSE(tcp_party("a")->capabilities().between_hosts);
  EXPECT_TRUE(tcp_party("a", {.tls = good_certificate()})->capabilities().encrypted);
  EXPECT_TRUE(tcp_party("a", {.tls = good_certificate()})->capabilities().between_hosts);
}

TEST(TcpOptions, AHostThatCannotBeFoundFailsTheConnection) {
  Party a = tcp_party("a", {.tls = good_certificate()});
  const Connection connection = a->connect({"tcp:no-such-host.invalid:1/s0/b"}).value();
  a.expect_failed(connection.established, core::Errc::config, "no-such-host.invalid");
}

}  // namespace
}  // namespace troupe::transport::testing
