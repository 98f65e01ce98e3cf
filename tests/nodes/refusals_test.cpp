// Errors that a run over nodes ends with, in one line that names the node and the reason; and connections refused during training.
#include <netinet/in.h>
#include <sys/socket.h>

#include <csignal>
#include <filesystem>

#include "tests/data/idx_files.hpp"
#include "tests/nodes/nodes_fixture.hpp"
#include "tests/transport/tcp/certificates.hpp"
#include "transport/security/openssl.hpp"

namespace troupe::nodes {
namespace {

using transport::testing::expired_certificate;
using transport::testing::foreign_certificate;
using transport::testing::good_certificate;

class Refusals : public NodesFixture {
 protected:
  /// `arguments` end with `code`, in one line that has all of `signs`. There is no run directory.
  void expect_refused(std::vector<std::string> arguments, int code, const std::vector<std::string>& signs,
                      const std::string& directory = {}) {
    Process process(std::move(arguments), directory);
    EXPECT_EQ(process.wait(), code) << process.err();
    EXPECT_TRUE(process.err().starts_with("troupe: ")) << process.err();
    EXPECT_EQ(count(process.err(), "\n"), 1) << process.err();
    for (const auto& sign : signs)
      EXPECT_NE(process.err().find(sign), std::string::npos) << sign << ": " << process.err();
    EXPECT_TRUE(no_run());
  }
  [[nodiscard]] std::vector<std::string> train_on(const std::string& nodes, const std::vector<std::string>& more = {}) {
    auto command = program({"train", config_, "--nodes", nodes, "--set", "run.dir=" + folder_.file("runs"), "--plain"});
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
};

TEST_F(Refusals, UnreachableNodesAreNamed) {
  start_nodes(1);
  const auto up = node(0).name();
  expect_refused(train_on(up + ",no-such-host.invalid:4242"), 78, {"no-such-host.invalid"});
  expect_refused(train_on(up + ",127.0.0.1:1"), 75, {"127.0.0.1:1", "no process listens"});
  expect_refused(train_on(up + "," + up), 78, {up, "twice"});
  const auto other_name = "localhost" + up.substr(up.find(':'));
  expect_refused(train_on(up + "," + other_name), 78, {up + " and " + other_name, "same node"});
  expect_refused(train_on(up + ",nonsense"), 78, {"nonsense"});
  expect_refused(train_on(""), 2, {"--nodes"});
  expect_refused(program({"node", "--listen", up}), 78, {up, "in use"});
  expect_refused(program({"node", "--listen", "nonsense"}), 78, {"nonsense"});
  expect_refused(program({"nodes", "no-such-host.invalid:4242"}), 78, {"no-such-host.invalid"});
  EXPECT_EQ(count(node(0).log(), "begins"), 0) << node(0).log();
}

TEST_F(Refusals, UnreachableNodesAreReportedOnce) {
  start_nodes(1);
  EXPECT_NE(node(0).log().find(", in " + std::filesystem::current_path().string() + "\n"), std::string::npos)
      << node(0).log();
  Process alone(program({"nodes", "127.0.0.1:1"}));
  EXPECT_EQ(alone.wait(), 75);
  EXPECT_EQ(alone.out(), "");
  EXPECT_EQ(alone.err(), "troupe: 127.0.0.1:1: no process listens there: has it been started?\n");
  Process both(program({"nodes", node(0).name() + ",127.0.0.1:1"}));
  EXPECT_EQ(both.wait(), 75);
  EXPECT_EQ(count(both.out(), node(0).name()), 1) << both.out();
  EXPECT_EQ(count(both.out(), "\n127.0.0.1:1  no process listens there: has it been started?\n"), 1) << both.out();
  EXPECT_EQ(both.err(), "troupe: 1 of 2 nodes did not answer\n");
}

TEST_F(Refusals, ACertificateMustNameTheListeningAddress) {
  auto command = program({"node", "--listen", "192.0.2.7:0"});
  const auto tls = tls_arguments(good_certificate());
  command.insert(command.end(), tls.begin(), tls.end());
  expect_refused(command, 78, {good_certificate().certificate + " does not name 192.0.2.7", "127.0.0.1"});
}

/// The same files by flags, by environment and in the user's folder.
TEST_F(Refusals, CertificatesAreFoundWithoutFlags) {
  const auto& good = good_certificate();
  const auto folder = folder_.file("config/troupe");
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(good.ca, folder + "/ca.pem");
  std::filesystem::copy_file(good.certificate, folder + "/node.pem");
  start_node({.tls = good, .within = {}});
  const auto asks = [&](std::vector<std::string> with) {
    with.insert(with.begin(), "env");
    const auto nodes = program({"nodes", node(0).name()});
    with.insert(with.end(), nodes.begin(), nodes.end());
    Process process(with);
    return std::pair(process.wait(), process.err());
  };
  const auto home = "XDG_CONFIG_HOME=" + folder_.file("config");
  EXPECT_NE(asks({"XDG_CONFIG_HOME=" + folder_.file("none"), "HOME=" + folder_.file("none")}).first, 0);
  EXPECT_EQ(asks({"TROUPE_CA=" + good.ca, "TROUPE_CERT=" + good.certificate, "TROUPE_KEY=" + good.key}),
            std::pair(0, std::string()));
  const auto half = asks({home});
  EXPECT_EQ(half.first, 78);
  EXPECT_NE(half.second.find("no --key (TROUPE_KEY, " + folder + "/node.key)"), std::string::npos) << half.second;
  EXPECT_EQ(asks({home, "TROUPE_KEY=" + good.key}), std::pair(0, std::string()));
  std::filesystem::copy_file(good.key, folder + "/node.key");
  EXPECT_EQ(asks({home}), std::pair(0, std::string()));
}

TEST_F(Refusals, FewerNodesThanRequiredAreRefused) {
  start_nodes(1);
  const auto both = node(0).name() + ",127.0.0.1:1";
  expect_refused(train_on(both, {"--min-nodes", "2"}), 75, {"127.0.0.1:1", "no process listens"});
  expect_refused(train_on("127.0.0.1:1," + node(0).name() + ",127.0.0.1:2", {"--min-nodes", "2"}), 75,
                 {"127.0.0.1:2", "no process listens"});
  expect_refused(train_on(both, {"--min-nodes", "3"}), 2, {"--min-nodes", "3 of 2"});
  expect_refused(train_on(both, with({"strategy.name=bsp"}, {"--min-nodes", "1"})), 78, {"bsp", "--min-nodes"});
  expect_refused(train_on(both, with({"cluster.server_placement=colocated"}, {"--min-nodes", "1"})), 78,
                 {"colocated", "--min-nodes"});
  expect_refused(program({"train", config_, "--min-nodes", "1"}), 2, {"--min-nodes", "--nodes"});
  expect_refused(program({"train", config_, "--ca", "ca.pem"}), 2, {"--ca", "--nodes"});
  EXPECT_EQ(count(node(0).log(), "begins"), 0) << node(0).log();
}

TEST_F(Refusals, MoreNodesThanWorkersAreRefused) {
  start_nodes(2);
  expect_refused(train_on(names(), with({"cluster.workers=1"})), 78, {"cluster.workers", "2 nodes"});
}

TEST_F(Refusals, OffLoopbackNeedsCertificates) {
  expect_refused(program({"node", "--listen", "0.0.0.0:0"}), 78, {"0.0.0.0", "TLS"});
  expect_refused(train_on("192.0.2.1:4242"), 78, {"192.0.2.1", "TLS"});
  expect_refused(program({"nodes", "192.0.2.1:4242"}), 78, {"TLS"});
}

TEST_F(Refusals, IncompleteCertificateOptionsAreRefused) {
  start_nodes(1);
  const auto& good = good_certificate();
  const std::vector<std::string> half{"--ca", good.ca, "--cert", good.certificate};
  expect_refused(train_on(node(0).name(), half), 78, {"TLS"});
  auto node_command = program({"node", "--listen", "127.0.0.1:0"});
  node_command.insert(node_command.end(), half.begin(), half.end());
  expect_refused(node_command, 78, {"TLS"});
  expect_refused(program({"nodes", node(0).name(), "--ca", good.ca}), 78, {"TLS"});
  for (const auto* bad : {&expired_certificate(), &foreign_certificate()})
    expect_refused(train_on(node(0).name(), tls_arguments(*bad)), 78, {bad->certificate});
  // One end has certificates, the other none.
  expect_refused(train_on(node(0).name(), tls_arguments(good)), 78, {node(0).name()});
}

/// An idx data set of 60 images per split, all of grey value `shade`, with labels 0 to 9 in turn.
void write_digits(const std::string& directory, std::uint8_t shade) {
  using data::big_endian;
  using data::operator+;
  std::filesystem::create_directories(directory);
  for (const char* split : {"train", "t10k"}) {
    constexpr std::uint32_t kCount = 60;
    const auto path = directory + "/" + split;
    data::write_file(path + "-images-idx3-ubyte", big_endian(2051) + big_endian(kCount) + big_endian(28) +
                                                      big_endian(28) + data::Bytes(kCount * 28 * 28, shade));
    data::Bytes labels;
    for (std::uint32_t i = 0; i < kCount; ++i) labels.push_back(static_cast<std::uint8_t>(i % 10));
    data::write_file(path + "-labels-idx1-ubyte", big_endian(2049) + big_endian(kCount) + labels);
  }
}

TEST_F(Refusals, NodeWithOtherDataIsRefused) {
  const auto here = folder_.file("here"), empty = folder_.file("empty"), other = folder_.file("other");
  std::filesystem::create_directories(empty);
  write_digits(here + "/digits", 100);
  write_digits(other + "/digits", 101);
  start_node({.tls = {}, .directory = here, .within = {}});
  start_node({.tls = {}, .directory = empty, .within = {}});
  start_node({.tls = {}, .directory = other, .within = {}});
  const auto digits = with({"data.name=mnist", "data.path=digits", "data.train_samples=0", "data.test_samples=0"});
  const auto expect_not_begun = [&](std::size_t bad, const std::string& sign) {
    Process run(train_on(node(0).name() + "," + node(bad).name(), digits), here);
    EXPECT_EQ(run.wait(), 65) << run.err();
    EXPECT_EQ(count(run.err(), "\n"), 1) << run.err();
    EXPECT_NE(run.err().find(node(bad).name()), std::string::npos) << run.err();
    EXPECT_NE(run.err().find(sign), std::string::npos) << run.err();
    EXPECT_NE(node(bad).log().find(sign), std::string::npos) << node(bad).log();
    EXPECT_EQ(run.err().find(node(0).name()), std::string::npos) << run.err();
    EXPECT_TRUE(no_run());
  };
  expect_not_begun(1, "digits");
  expect_refused(train_on(node(1).name(), digits), 65, {node(1).name(), "(this node was started in " + empty + ")"},
                 here);
  expect_not_begun(2, "is not the one that the coordinator has");
  // The node that was ready is free again.
  Process run(train_on(node(0).name(), digits), here);
  EXPECT_EQ(run.wait(), 0) << run.err();
}

TEST_F(Refusals, ReturningNodeWithoutTheDataIsReportedOnce) {
  const auto here = folder_.file("here"), empty = folder_.file("empty");
  std::filesystem::create_directories(empty);
  write_digits(here + "/digits", 100);
  for (int k = 0; k < 2; ++k) start_node({.tls = {}, .directory = here, .within = {}});
  const auto at = node(1).port();
  Process run(train_on(names(), with({"data.name=mnist", "data.path=digits", "data.train_samples=0",
                                      "data.test_samples=0", "run.epochs=100000", "cluster.synthetic_step_ms=20"})),
              here);
  ASSERT_TRUE(run.says("epoch 1/")) << run.err();
  node(1).process().kill();
  start_node({.tls = {}, .directory = empty, .port = at, .within = {}});
  ASSERT_TRUE(run.says("does not take the place of worker 2: ")) << run.err();
  ASSERT_TRUE(node(2).process().says("digits", 2)) << node(2).log();  // the node has been asked again
  node(2).process().kill();
  start_node({.tls = {}, .directory = here, .port = at, .within = {}});
  ASSERT_TRUE(run.says("joined as a new member")) << run.err();
  EXPECT_EQ(count(run.err(), "does not take the place"), 1) << run.err();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.err();
}

/// A plain connection to 127.0.0.1:`port` that sends `bytes`. It stays open as long as this object lives.
class Visitor {
 public:
  Visitor(std::uint16_t port, std::string_view bytes) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  ~Visitor() { ::close(socket_); }
  Visitor(const Visitor&) = delete;
  Visitor& operator=(const Visitor&) = delete;

  /// Attempts a TLS handshake with this certificate; it must fail.
  void shake_hands(const security::TlsFiles& tls) const {
    const std::unique_ptr<SSL_CTX, security::Freed<SSL_CTX_free>> context(SSL_CTX_new(TLS_client_method()));
    ASSERT_EQ(SSL_CTX_use_certificate_file(context.get(), tls.certificate.c_str(), SSL_FILETYPE_PEM), 1);
    ASSERT_EQ(SSL_CTX_use_PrivateKey_file(context.get(), tls.key.c_str(), SSL_FILETYPE_PEM), 1);
    const std::unique_ptr<SSL, security::Freed<SSL_free>> ssl(SSL_new(context.get()));
    SSL_set_fd(ssl.get(), socket_);
    // With TLS 1.3 the client finishes the handshake before the server has verified its certificate.
    if (SSL_connect(ssl.get()) != 1) return;
    char byte = 0;
    EXPECT_LE(SSL_read(ssl.get(), &byte, 1), 0) << "was let in";
  }

 private:
  int socket_;
};

TEST_F(Refusals, UnknownPeersAreRefusedDuringTraining) {
  start_nodes(2, good_certificate());
  const std::string garbage(100'000, '\x5a');
  Process run(train(with({"run.epochs=100000", "cluster.synthetic_step_ms=20", "exchange.endpoint=tcp"})));
  ASSERT_TRUE(run.says("epoch 1/")) << run.err();
  for (std::size_t k = 0; k < 2; ++k) {
    const Visitor silent(node(k).port(), "");
    const Visitor talker(node(k).port(), garbage);
    EXPECT_TRUE(node(k).process().says("rejected ", 1)) << node(k).log();
    Visitor(node(k).port(), "").shake_hands(expired_certificate());
    EXPECT_TRUE(node(k).process().says("expired")) << node(k).log();
    Visitor(node(k).port(), "").shake_hands(foreign_certificate());
    EXPECT_TRUE(node(k).process().says("rejected ", 3)) << node(k).log();
    Process plain(program({"nodes", node(k).name()}));
    EXPECT_NE(plain.wait(), 0) << plain.out();
    // The silent connection was refused after five seconds.
    EXPECT_TRUE(node(k).process().says("rejected ", 5)) << node(k).log();
  }
  const auto epochs = count(run.err(), "epoch ");
  EXPECT_TRUE(run.says("epoch ", epochs + 2)) << run.err();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.err();
  EXPECT_EQ(run.err().find("lost"), std::string::npos) << run.err();
  expect_free();
}

TEST_F(Refusals, GarbageAtAPlainPortDisturbsNoRun) {
  start_nodes(2);
  Process run(train(with({"run.epochs=100000", "cluster.synthetic_step_ms=20"})));
  ASSERT_TRUE(run.says("epoch 1/")) << run.err();
  for (std::size_t k = 0; k < 2; ++k) {
    const Visitor talker(node(k).port(), std::string(100'000, '\xff'));
    EXPECT_TRUE(node(k).process().says("rejected ")) << node(k).log();
  }
  const auto epochs = count(run.err(), "epoch ");
  EXPECT_TRUE(run.says("epoch ", epochs + 2)) << run.err();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.err();
  EXPECT_EQ(run.err().find("lost"), std::string::npos) << run.err();
}

}  // namespace
}  // namespace troupe::nodes
