// Real nodes and a real coordinator, over TLS. A peer that is no member, with a certificate of their authority, sends arbitrary data to
// the nodes' listeners and data endpoints. A run continues meanwhile with unchanged bits.
#include "actors/deployment/nodes.hpp"

#include <dirent.h>
#include <sys/socket.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "actors/control/conversation.hpp"
#include "actors/control/network.hpp"
#include "tests/actors/control/wire_frames.hpp"
#include "tests/hostile/budget.hpp"
#include "tests/nodes/nodes_fixture.hpp"
#include "tests/transport/tcp/certificates.hpp"
#include "tests/wait.hpp"
#include "transport/net/connector.hpp"
#include "transport/security/tls_context.hpp"

namespace troupe::hostile {
namespace {

using namespace actors;
using nodes::Process;
using transport::testing::good_certificate;

constexpr std::uint64_t kGrowth = std::uint64_t{128} << 20;

/// The ports that a process listens at, from the kernel's tables.
std::vector<std::uint16_t> ports_of(pid_t process) {
  std::set<std::string> sockets;
  const auto folder = fmt::format("/proc/{}/fd", process);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with("socket:[")) sockets.insert(target.substr(8, target.size() - 9));
  }
  std::vector<std::uint16_t> ports;
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string number, local, remote, state, skip, inode;
    fields >> number >> local >> remote >> state;
    for (int k = 0; k < 5; ++k) fields >> skip;
    fields >> inode;
    if (state == "0A" && sockets.contains(inode))
      ports.push_back(static_cast<std::uint16_t>(std::stoul(local.substr(local.find(':') + 1), nullptr, 16)));
  }
  return ports;
}

/// A non-blocking TLS connection with a valid certificate.
class Caller {
 public:
  static std::optional<Caller> call(SSL_CTX* context, std::uint16_t port) {
    auto wire =
        transport::dial({"127.0.0.1", port}, context, transport::ConnectClock::now() + std::chrono::seconds(10));
    if (!wire) return {};
    return Caller(std::move(*wire));
  }
  /// Sends `bytes`. False: the peer has closed the connection, or does not read.
  bool say(std::string_view bytes) {
    for (int patience = 0; !bytes.empty() && patience < 2000;) {
      const auto moved = connection_.write(bytes.data(), bytes.size());
      if (moved.state == transport::ConnectionState::ended) return false;
      bytes.remove_prefix(moved.bytes);
      if (moved.bytes > 0) continue;
      ++patience;
      listen();
      pollfd entry{connection_.descriptor(), POLLIN | POLLOUT, 0};
      ::poll(&entry, 1, 5);
    }
    return bytes.empty() && listen();
  }
  /// Reads the bytes that have arrived. False: the peer has closed the connection.
  bool listen() {
    std::array<char, 16384> buffer;
    for (;;) {
      const auto moved = connection_.read(buffer.data(), buffer.size());
      if (moved.state == transport::ConnectionState::ended) return false;
      if (moved.bytes == 0) return true;
      if (heard_.size() < 4096) heard_.append(buffer.data(), moved.bytes);
    }
  }
  /// The peer's handshake has arrived as a whole.
  [[nodiscard]] bool greeted() const {
    FrameGuard guard(security::TlsSide::dialled);
    return !guard.watch(heard_) && guard.greeted();
  }
  /// The peer's first bytes: CAF's handshake, which has the id of the published actor.
  [[nodiscard]] const std::string& heard() const { return heard_; }

 private:
  explicit Caller(transport::TlsConnection wire) : connection_(std::move(wire)) {}
  transport::TlsConnection connection_;
  std::string heard_;
};

class HostileNodes : public nodes::NodesFixture {
 protected:
  HostileNodes() : context_(security::make_tls_context(good_certificate(), std::time(nullptr)).value()) {}

  /// The id of the actor published at a node's port; 0: the node has not said it.
  caf::actor_id published(std::uint16_t port) {
    auto caller = Caller::call(context_.get(), port);
    if (!caller || !tests::eventually([&] { return !caller->listen() || caller->greeted(); })) return 0;
    if (caller->heard().size() < FrameGuard::kHeaderBytes) return 0;
    ValueReader reader(std::span(caller->heard()).subspan(FrameGuard::kHeaderBytes));
    std::string text;
    std::size_t count = 0;
    std::uint64_t id = 0;
    if (!reader.node(text) || !reader.length(count)) return 0;
    for (std::size_t k = 0; k < count; ++k)
      if (!reader.text(text)) return 0;
    return reader.number(id) ? id : 0;
  }

  std::shared_ptr<SSL_CTX> context_;
  SystemConfig config_of_messages_;
  caf::actor_system system_{config_of_messages_};
};

/// A frame to the node or to another receiver, valid or nearly so.
std::string some_frame(Dice& dice, caf::actor_system& system, const caf::node_id& self, caf::actor_id published) {
  using actors::testing::content;
  actors::testing::FrameFields fields{
      .id = caf::message_id::default_async_value, .from = 1 + dice.below(50), .to = published};
  std::string payload;
  switch (dice.below(8)) {
    case 0:
    case 1:
      fields.id |= 1 + dice.below(100'000);
      payload = content(system, NodeQuery{});
      break;
    case 2: {
      fields.id |= 1 + dice.below(100'000);
      SiteOrder order{.version = dice.one_in(2) ? actors::spoken_version(TROUPE_TEST_VERSION) : "0",
                      .run = "hostile",
                      .config = "[run]\nname = \"x\"\n",
                      .site = dice.number<std::uint32_t>(),
                      .workers = {dice.number<std::uint32_t>()},
                      .servers = {dice.number<std::uint32_t>()},
                      .plan = "{",
                      .layout = dice.bits(),
                      .most_floats = dice.number<std::uint64_t>(),
                      .exchange = dice.one_in(2) ? "{}" : "",
                      .data = dice.bits(),
                      .secret = std::to_string(dice.below(1000))};
      payload = content(system, order);
      break;
    }
    case 3: payload = content(system, LeaseRequest{dice.number<std::uint32_t>(), dice.number<std::uint32_t>()}); break;
    case 4: payload = content(system, Halt{}); break;
    case 5:
      payload = content(system, JournalRecords{{dice.number<std::uint16_t>()}, {dice.number<std::uint32_t>()}, {'a'}});
      break;
    case 6: fields = {.type = actors::testing::message_type::heartbeat, .id = 0}; break;
    default:
      fields = {.type = actors::testing::message_type::down_message, .id = 0, .from = dice.below(100)};
      payload = actors::testing::in_wire_form(system, self, actors::testing::test_node(dice.number<std::uint32_t>()),
                                              caf::error{});
  }
  if (dice.one_in(24)) dice.damage(payload);
  if (dice.one_in(24)) fields.to = dice.below(200);
  if (dice.one_in(48)) fields.id = dice.bits();
  auto bytes = actors::testing::frame(fields, payload);
  if (dice.one_in(48)) dice.damage(bytes);
  return bytes;
}

TEST_F(HostileNodes, AnUnknownPeerWithACertificateDisturbsNoRun) {
  Dice dice("HostileNodes, an unknown peer");
  start_nodes(2, good_certificate());
  const std::vector<std::string> settings{"strategy.name=bsp", "exchange.algorithm=asa", "exchange.endpoint=tcp"};
  Process alone(train(with(settings)));
  ASSERT_EQ(alone.wait(), 0) << alone.err();
  const auto hash = summary(alone)["center_hash"];

  const auto count = messages(10);
  // Steps get longer with the number of messages, up to 2 s, so that the run lasts about as long as the attack.
  Process run(
      train(with(settings, with({"run.epochs=2", fmt::format("cluster.synthetic_step_ms={}",
                                                             std::min<std::uint64_t>(20 + count / 200, 2000))}))));
  ASSERT_TRUE(run.says("epoch 1/")) << run.err();
  const std::uint64_t before[] = {node(0).resident(), node(1).resident()};
  const caf::actor_id listeners[] = {published(node(0).port()), published(node(1).port())};
  ASSERT_NE(listeners[0], 0U) << node(0).log();
  ASSERT_NE(listeners[1], 0U) << node(1).log();
  std::uint64_t said = 0, calls = 0;
  while (said < count) {
    const auto which = dice.below(2);
    const auto self = actors::testing::test_node(static_cast<std::uint32_t>(dice.bits()));
    auto caller = Caller::call(context_.get(), node(which).port());
    ++calls;
    if (!caller) continue;
    auto greeting = actors::testing::client_handshake(system_, self);
    if (dice.one_in(10)) dice.damage(greeting);
    ++said;
    if (!caller->say(greeting)) continue;
    for (int k = 0; k < 500 && said < count; ++k) {
      ++said;
      if (!caller->say(some_frame(dice, system_, self, listeners[which]))) break;
    }
  }
  // The data endpoints: members alone know their addresses, and only members are admitted.
  for (std::size_t k = 0; k < 2; ++k) {
    for (const auto port : ports_of(node(k).process().pid())) {
      if (port == node(k).port()) continue;
      for (int visit = 0; visit < 50; ++visit) {
        auto caller = Caller::call(context_.get(), port);
        std::string bytes(dice.below(3000), static_cast<char>(dice.bits()));
        dice.damage(bytes);
        if (caller) (void)caller->say(bytes);
      }
    }
  }
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(summary(run)["center_hash"], hash);
  for (std::size_t k = 0; k < 2; ++k) {
    EXPECT_TRUE(node(k).process().runs()) << node(k).log();
    EXPECT_LT(node(k).resident(), before[k] + kGrowth);
    EXPECT_GT(nodes::count(node(k).log(), "rejected"), 0U);
  }
  std::printf("%llu messages in %llu calls\n", static_cast<unsigned long long>(said),
              static_cast<unsigned long long>(calls));
  expect_free();
}

}  // namespace
}  // namespace troupe::hostile
