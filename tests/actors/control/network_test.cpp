// Processes connect: without TLS on loopback, over mutual TLS elsewhere; all other connections are refused.
#include "actors/control/network.hpp"

#include <signal.h>

#include <chrono>

#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/serializer_impl.hpp>
#include <gtest/gtest.h>

#include "network_peers.hpp"
#include "tests/folder.hpp"
#include "tests/transport/tcp/certificates.hpp"
#include "transport/security/authority.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using testing::ControlNode;
using testing::free_port;
using testing::Greeter;
using testing::kSoon;
using testing::OtherProcess;
using testing::say;
using testing::say_over_tls;
using transport::testing::expired_certificate;
using transport::testing::foreign_certificate;
using transport::testing::good_certificate;

/// A cluster with its own authority: its certificates are valid, but signed by another authority than ours.
const security::TlsFiles& other_cluster() {
  static const tests::Folder directory;
  static const security::TlsFiles files = [] {
    const auto now = std::time(nullptr);
    if (!security::create_authority(directory.path(), now, false)) throw std::runtime_error("no authority");
    return security::create_node(directory.path(), "other", {}, now, false).value();
  }();
  return files;
}

core::Error error_of(ControlNode& node, const HostPort& where, core::Duration deadline = kSoon) {
  const auto greeter = node.network().connect<Greeter>(where, deadline);
  return greeter ? core::Error{core::Errc::internal, "it connected"} : greeter.error();
}

#define EXPECT_ERROR(error, expected_code, part)                               \
  do {                                                                         \
    const core::Error error_ = (error);                                        \
    EXPECT_EQ(name(error_.code), name(expected_code)) << error_.message;       \
    EXPECT_NE(error_.message.find(part), std::string::npos) << error_.message; \
    EXPECT_EQ(error_.message.find('\n'), std::string::npos) << error_.message; \
  } while (false)

class NetworkBoth : public ::testing::TestWithParam<bool> {
 protected:
  security::TlsFiles tls = GetParam() ? good_certificate() : security::TlsFiles{};
};

TEST_P(NetworkBoth, RequestIsAnsweredOverTheNetwork) {
  ControlNode server(tls);
  ControlNode client(tls);
  EXPECT_EQ(client.ask(server.serve("here")), "here");
  EXPECT_TRUE(server.refused_nobody());
}

TEST_P(NetworkBoth, ProcessMayServeTwoPortsAndCallBack) {
  ControlNode one(tls);
  ControlNode two(tls);
  const auto first = one.serve("first");
  const auto second = one.serve("second");
  const auto back = two.serve("back");
  EXPECT_EQ(two.ask(first), "first");
  EXPECT_EQ(two.ask(second), "second");  // CAF keeps one of two connections
  EXPECT_EQ(one.ask(back), "back");
  EXPECT_EQ(two.ask(first), "first");
}

TEST_P(NetworkBoth, ALocalhostNameIsAccepted) {
  ControlNode server(tls);
  ControlNode client(tls);
  const auto port = server.serve();
  const auto greeter = client.network().connect<Greeter>({"localhost", port}, kSoon);
  ASSERT_TRUE(greeter) << greeter.error().message;
  EXPECT_EQ(client.ask(*greeter), "a greeter");
}

TEST_P(NetworkBoth, AnotherTypeOfActorIsAnError) {
  ControlNode server(tls);
  ControlNode client(tls);
  const auto port = server.serve();
  const auto pending_connection = client.network().connect<testing::PendingConnection>({"127.0.0.1", port}, kSoon);
  ASSERT_FALSE(pending_connection);
  EXPECT_ERROR(pending_connection.error(), core::Errc::config, "another kind of process listens there");
  EXPECT_EQ(client.ask(port), "a greeter");
}

TEST_P(NetworkBoth, ConnectingWhereNoProcessListensFails) {
  ControlNode client(tls);
  const auto port = free_port();
  EXPECT_ERROR(error_of(client, {"127.0.0.1", port}), core::Errc::peer_lost,
               "127.0.0.1:" + std::to_string(port) + ": no process listens there");
}

TEST_P(NetworkBoth, UnknownHostIsAnError) {
  ControlNode client(tls);
  EXPECT_ERROR(error_of(client, {"no-such-host.invalid", 4242}), core::Errc::config,
               "host no-such-host.invalid cannot be found");
}

TEST_P(NetworkBoth, PortInUseIsAnError) {
  ControlNode one(tls);
  ControlNode two(tls);
  const auto port = one.serve();
  const Greeter nobody = caf::actor_cast<Greeter>(two.network().connect<Greeter>({"127.0.0.1", port}, kSoon).value());
  const auto published = two.network().publish(nobody, {"127.0.0.1", port});
  ASSERT_FALSE(published);
  EXPECT_ERROR(published.error(), core::Errc::config, "choose another port");
}

TEST_P(NetworkBoth, ASilentListenerEndsTheConnectAtTheDeadline) {
  ControlNode client(tls, 200ms);
  const testing::SilentPort silent;
  EXPECT_ERROR(error_of(client, {"127.0.0.1", silent.port()}, 300ms), core::Errc::timeout,
               "127.0.0.1:" + std::to_string(silent.port()));
  EXPECT_ERROR(error_of(client, {"127.0.0.1", silent.port()}, 700ms), core::Errc::timeout,
               "127.0.0.1:" + std::to_string(silent.port()));  // longer than a heartbeat
}

TEST_P(NetworkBoth, GarbageIsRefusedAndOthersAreServed) {
  ControlNode server(tls);
  ControlNode client(tls);
  const auto port = server.serve();
  say(port, "GET / HTTP/1.1\r\n\r\n");
  EXPECT_NE(server.refusal(), "");
  say(port, std::string(4096, '\xff'));
  EXPECT_NE(server.refusal(), "");
  EXPECT_EQ(client.ask(port), "a greeter");
}

TEST_P(NetworkBoth, NothingCanBeSpawnedFromElsewhere) {
  ControlNode server(tls);
  ControlNode client(tls);
  const auto port = server.serve();
  const auto greeter = client.network().connect<Greeter>({"127.0.0.1", port}, kSoon);
  ASSERT_TRUE(greeter) << greeter.error().message;
  const auto running = server.system().registry().running();
  const auto spawned = client.system().middleman().remote_spawn<caf::actor>(greeter->node(), "worker",
                                                                            caf::make_message(), caf::duration(kSoon));
  EXPECT_FALSE(spawned);
  EXPECT_EQ(server.system().registry().running(), running);
  EXPECT_EQ(client.ask(*greeter), "a greeter");
}

TEST_P(NetworkBoth, TheConfigurationCannotBeChangedFromElsewhere) {
  ControlNode server(tls);
  ControlNode client(tls);
  const auto greeter = client.network().connect<Greeter>({"127.0.0.1", server.serve()}, kSoon);
  ASSERT_TRUE(greeter) << greeter.error().message;
  caf::scoped_actor self(client.system());
  const auto broker = client.system().middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  bool answered = false;
  self->request(broker, caf::duration(kSoon), caf::forward_atom_v, greeter->node(), caf::atom("ConfigServ"),
                caf::make_message(caf::get_atom_v, "scheduler.policy"))
      .receive([&](const caf::message&) { answered = true; }, [](const caf::error&) {});
  EXPECT_FALSE(answered);
  EXPECT_EQ(client.ask(*greeter), "a greeter");
}

TEST_P(NetworkBoth, AKilledProcessIsReportedLost) {
  OtherProcess other(tls);
  ControlNode client(tls);
  testing::Watch watch(client, other.port());
  EXPECT_EQ(watch.answer(), "another process");
  other.signal(SIGKILL);
  EXPECT_TRUE(watch.down());
}

TEST_P(NetworkBoth, AStoppedProcessIsReportedLostAndMayReconnect) {
  OtherProcess other(tls);
  ControlNode client(tls, 250ms, 3s);
  testing::Watch watch(client, other.port());
  EXPECT_EQ(watch.answer(), "another process");
  other.signal(SIGSTOP);
  EXPECT_TRUE(watch.down());  // after lost_after without heartbeats
  other.signal(SIGCONT);
  EXPECT_EQ(client.ask(other.port()), "another process");
}

TEST_P(NetworkBoth, LongMessagesArriveWhole) {
  ControlNode server(tls);
  ControlNode client(tls);
  const std::string name(std::size_t{3} << 20, 'x');
  EXPECT_TRUE(client.ask(server.serve(name)) == name);
}

TEST(Network, IncompleteTlsFilesAreAnError) {
  for (const int missing : {0, 1, 2}) {
    security::TlsFiles tls = good_certificate();
    (missing == 0 ? tls.ca : missing == 1 ? tls.certificate : tls.key).clear();
    const NetworkOptions options{.tls = tls};
    NetworkConfig config(options);
    caf::actor_system system(config);
    const auto network = Network::create(system, options);
    ASSERT_FALSE(network);
    EXPECT_ERROR(network.error(), core::Errc::config, "TLS is set half-way");
  }
}

TEST(Network, InvalidTlsFilesAreAnErrorAtTheStart) {
  security::TlsFiles mismatched = good_certificate();
  mismatched.key = other_cluster().key;
  security::TlsFiles wrong_authority = good_certificate();
  wrong_authority.ca = other_cluster().ca;
  for (const auto& [files, why] : {std::pair{expired_certificate(), "expired on"},
                                   {mismatched, "does not belong to the certificate"},
                                   {wrong_authority, "is not signed by the authority"}}) {
    const NetworkOptions options{.tls = files};
    NetworkConfig config(options);
    caf::actor_system system(config);
    const auto network = Network::create(system, options);
    ASSERT_FALSE(network) << why;
    EXPECT_ERROR(network.error(), core::Errc::config, why);
  }
}

TEST(Network, OffLoopbackNeedsTls) {
  ControlNode node;
  const auto greeter = node.network().connect<Greeter>({"127.0.0.1", node.serve()}, kSoon);
  for (const std::string host : {"0.0.0.0", "::", "192.0.2.7"}) {
    EXPECT_ERROR(error_of(node, {host, 4242}), core::Errc::config, "off loopback the control plane needs TLS");
    const auto published = node.network().publish(node.greeter(), {host, 0});
    ASSERT_FALSE(published) << host;
    EXPECT_ERROR(published.error(), core::Errc::config, "`troupe certs`");
  }
}

TEST(Network, ListensEverywhereWithTls) {
  ControlNode server(good_certificate());
  ControlNode client(good_certificate());
  server.serve("everywhere");
  const auto port = server.network().publish(server.greeter(), {"0.0.0.0", 0});
  ASSERT_TRUE(port) << port.error().message;
  EXPECT_EQ(client.ask(*port), "everywhere");
}

TEST(Network, AnAddressOfAnotherHostCannotBeListenedAt) {
  ControlNode node(good_certificate());
  node.serve();
  const auto port = node.network().publish(node.greeter(), {"192.0.2.7", 0});
  ASSERT_FALSE(port);
  EXPECT_ERROR(port.error(), core::Errc::config, "give an address of this host");
}

TEST(Network, ANameThatResolvesToLoopbackHereIsRefusedForOthers) {
  ControlNode node(good_certificate());
  node.serve();
  // Not written as a loopback address, like a host's own name in Debian's /etc/hosts; resolvers resolve it to 127.0.0.1.
  const auto port = node.network().publish(node.greeter(), {"127.1", 0});
  ASSERT_FALSE(port);
  EXPECT_ERROR(port.error(), core::Errc::config, "127.1 is 127.0.0.1 on this host, where no other host reaches it");
}

TEST(Network, ConnectingToItselfIsRefused) {
  ControlNode node;
  EXPECT_ERROR(error_of(node, {"127.0.0.1", node.serve()}), core::Errc::config, "this process itself");
}

TEST(NetworkTls, InvalidCertificatesAreRefused) {
  ControlNode server(good_certificate());
  ControlNode client(good_certificate());
  const auto port = server.serve();
  EXPECT_NE(say_over_tls(port, good_certificate(), ""), "");  // CAF's handshake to an accepted client
  EXPECT_EQ(server.refusal(), "the other end closed the connection");
  EXPECT_EQ(say_over_tls(port, {}, ""), "");
  EXPECT_NE(server.refusal().find("certificate"), std::string::npos);
  EXPECT_EQ(say_over_tls(port, foreign_certificate(), ""), "");
  EXPECT_NE(server.refusal().find("issuer"), std::string::npos);
  EXPECT_EQ(say_over_tls(port, expired_certificate(), ""), "");
  EXPECT_EQ(server.refusal(), "certificate has expired");
  EXPECT_EQ(client.ask(port), "a greeter");
}

TEST(NetworkTls, CertificatesOfAnotherClusterAreRefused) {
  ControlNode ours(good_certificate());
  ControlNode theirs(other_cluster());
  const auto port = ours.serve();
  EXPECT_ERROR(error_of(theirs, {"127.0.0.1", port}), core::Errc::config, "certificates of one authority");
  EXPECT_ERROR(error_of(ours, {"127.0.0.1", theirs.serve()}), core::Errc::config, "certificates of one authority");
  ControlNode client(good_certificate());
  EXPECT_EQ(client.ask(port), "a greeter");
}

TEST(NetworkTls, TheCertificateMustNameTheHostThatWasDialled) {
  ControlNode server(good_certificate());
  ControlNode client(good_certificate());
  server.serve();
  const auto port = server.network().publish(server.greeter(), {"127.0.0.2", 0});  // is in no certificate
  ASSERT_TRUE(port) << port.error().message;
  EXPECT_ERROR(error_of(client, {"127.0.0.2", *port}), core::Errc::config,
               "its certificate does not name 127.0.0.2: make one with `troupe certs node NAME --host 127.0.0.2`");
}

TEST(NetworkTls, PlainAndTlsDoNotMix) {
  ControlNode encrypted(good_certificate());
  ControlNode plain;
  const auto tls_port = encrypted.serve("encrypted");
  const auto plain_port = plain.serve("plain");
  EXPECT_ERROR(error_of(plain, {"127.0.0.1", tls_port}), core::Errc::peer_lost, "does that end want TLS");
  EXPECT_ERROR(error_of(encrypted, {"127.0.0.1", plain_port}), core::Errc::config, "do both ends speak TLS");
  ControlNode encrypted_client(good_certificate());
  ControlNode plain_client;
  EXPECT_EQ(encrypted_client.ask(tls_port), "encrypted");
  EXPECT_EQ(plain_client.ask(plain_port), "plain");
}

TEST(NetworkTls, SilentUnknownPeersDoNotKeepMembersOut) {
  ControlNode server(good_certificate());
  ControlNode client(good_certificate());
  const auto port = server.serve();
  std::vector<core::FileDescriptor> silent;
  for (int i = 0; i < 80; ++i) silent.push_back(testing::connected(port));
  EXPECT_EQ(client.ask(port), "a greeter");
  EXPECT_NE(server.refusal().find("newer connections are pending"), std::string::npos);
}

TEST(NetworkTls, CafsOwnClientIsRefused) {
  ControlNode server(good_certificate());
  ControlNode client(good_certificate());
  const auto port = server.serve();
  const auto found = client.system().middleman().remote_actor<Greeter>("127.0.0.1", port);
  EXPECT_FALSE(found);
  EXPECT_EQ(client.ask(port), "a greeter");
}

TEST(NetworkPlain, HandshakeThatWouldCrashCafIsRefused) {
  ControlNode server;
  ControlNode client;
  const auto port = server.serve();
  std::string handshake(32, '\0');
  handshake[0] = 1;  // a client's handshake without payload
  say(port, handshake);
  EXPECT_EQ(server.refusal(), "invalid handshake length");
  handshake[0] = 0;  // a server's handshake
  handshake[15] = 4;
  say(port, handshake);
  EXPECT_EQ(server.refusal(), "it does not speak CAF's protocol");
  EXPECT_EQ(client.ask(port), "a greeter");
}

TEST(NetworkPlain, AProtocolViolationAfterTheHandshakeIsReported) {
  ControlNode server;
  ControlNode client;
  const auto port = server.serve();
  std::vector<char> node_id;
  caf::binary_serializer sink(client.system(), node_id);
  ASSERT_FALSE(sink(caf::make_node_id(7, std::string(40, 'a')).value()));
  std::string bytes(32, '\0');
  bytes[0] = 1;  // a client's handshake
  bytes[7] = static_cast<char>(node_id.size());
  bytes.append(node_id.begin(), node_id.end());
  const std::string absurd(32, '\xff');
  say(port, bytes + absurd);
  EXPECT_EQ(server.refusal(), "it sends messages of an unknown kind");
  EXPECT_EQ(client.ask(port), "a greeter");
}

TEST(NetworkAddress, LoopbackAddressesAreRecognised) {
  for (const char* text : {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"})
    EXPECT_TRUE(is_loopback(parse_host_port(text).value())) << text;
  for (const char* text : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "node2:1"})
    EXPECT_FALSE(is_loopback(parse_host_port(text).value())) << text;
}

TEST(NetworkAddress, TextThatIsNoAddressIsAnError) {
  for (const char* text : {"", "node2", "node2:", ":1", "node2:70000", "::1:1", "a b:1"})
    EXPECT_FALSE(parse_host_port(text)) << text;
}

}  // namespace
INSTANTIATE_TEST_SUITE_P(, NetworkBoth, ::testing::Bool(),
                         [](const auto& given) { return given.param ? "Tls" : "Plain"; });
}  // namespace troupe::actors
