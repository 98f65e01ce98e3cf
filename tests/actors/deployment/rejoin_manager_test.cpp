// A real rejoin manager; the test plays the node, the site and the coordinator. Checks which of them it asks for what, in which order.
#include "actors/deployment/rejoin_manager.hpp"

#include <atomic>
#include <optional>

#include <gtest/gtest.h>

#include "nn/checkpoint/safetensors.hpp"
#include "tests/actors/control/network_peers.hpp"
#include "tests/folder.hpp"
#include "tests/wait.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

/// How the node answers orders for sites.
struct Orders {
  std::atomic<bool> refused = false;
  std::atomic<int> heard = 0;
};

NodeActor::behavior_type node_with(NodeActor::pointer, const SiteActor& site, Orders* orders) {
  return {
      [](const NodeQuery&) { return NodeFacts{}; },
      [](const GpuQuery&) { return GpuReport{}; },
      [site, orders](const SiteOrder&) -> caf::result<SiteOpened, OpenedSite> {
        ++orders->heard;
        if (orders->refused) return {SiteOpened{.address = {}, .error = "no data"}, OpenedSite{}};
        return {SiteOpened{.address = "tcp:there"}, OpenedSite{site}};
      },
  };
}

/// A checkpoint with one parameter and the state of an optimizer.
std::string write_checkpoint(const tests::Folder& folder) {
  const std::vector<std::byte> bytes(100);
  const auto encoded =
      nn::encode_safetensors(std::vector<nn::TensorView>{{"w", nn::DType::f32, {1}, std::span(bytes).first(4)},
                                                         {"worker.0.optimizer", nn::DType::u8, {100}, bytes}},
                             {{"own_states", "worker.0.optimizer"}})
          .value();
  std::string text;
  for (const auto& part : encoded.parts()) text.append(reinterpret_cast<const char*>(part.data()), part.size());
  return folder.write("checkpoint", text);
}

class RejoinManagerTest : public ::testing::Test {
 protected:
  RejoinManagerTest() {
    node_ = there_.system().spawn(node_with, caf::actor_cast<SiteActor>(*site_), &orders_);
    const auto port = there_.network().publish(node_, {"127.0.0.1", 0}).value();
    SiteOrder order;
    order.site = 1;
    rejoin_manager_ = here_.system().spawn<caf::detached>(
        rejoin_manager, RejoinManagerSetup{.network = {std::shared_ptr<void>(), &here_.network()},
                                           .nodes = {{"127.0.0.1", port}},
                                           .names = {"there:1"},
                                           .orders = {order},
                                           .sites = 2,
                                           .address = "tcp:here",
                                           .exchanger = caf::actor_cast<ExchangerActor>(exchanger_),
                                           .recorder = caf::actor_cast<RecorderActor>(recorder_)});
  }
  ~RejoinManagerTest() override {
    self_->send(rejoin_manager_, Halt{});
    self_->wait_for(rejoin_manager_);
    caf::anon_send_exit(node_, caf::exit_reason::user_shutdown);
  }
  /// Passes `who`'s next message to `handler`. Fails after 60 s without one.
  template <class Handler>
  static void expect(caf::scoped_actor& who, Handler handler) {
    who->receive(
        std::move(handler), caf::after(60s) >> [] { ADD_FAILURE() << "nobody said it"; });
  }
  /// The rejoin manager leaves no actor behind: otherwise the process could not end.
  void expect_end_of_rejoin_manager(std::size_t running_before) {
    self_->send(rejoin_manager_, Halt{});
    self_->wait_for(rejoin_manager_);
    const auto& registry = here_.system().registry();
    EXPECT_TRUE(tests::eventually([&] { return registry.running() < running_before; }));
  }
  void admit_newcomer();
  [[nodiscard]] std::size_t running() { return here_.system().registry().running(); }
  static void failed(const caf::error& error) { ADD_FAILURE() << caf::to_string(error); }

  Orders orders_;
  testing::ControlNode here_, there_;
  caf::scoped_actor self_{here_.system()}, exchanger_{here_.system()}, recorder_{here_.system()};
  std::optional<caf::scoped_actor> site_{std::in_place, there_.system()};
  NodeActor node_;
  RejoinManagerActor rejoin_manager_;
};

/// A lost worker's node is back: its site compiles and becomes a member.
void RejoinManagerTest::admit_newcomer() {
  self_->send(rejoin_manager_, Vacancy{0});
  expect(*site_, [&](const CompileOrder&) {
    EXPECT_TRUE(self_->mailbox().empty());  // the coordinator, which would pause the others, does not know yet
    return SiteReady{};
  });
  expect(self_, [](const Arrived& news) { EXPECT_EQ(news.worker, 0U); });

  const tests::Folder folder;
  const auto checkpoint = write_checkpoint(folder);
  auto admission = self_->request(rejoin_manager_, 60s, AdmissionOrder{0, checkpoint, 7, {3}});
  expect(exchanger_, [](const StartPayload& payload) {
    const auto file = nn::parse_safetensors(*payload.file, "the payload", nn::Checksums::required);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_NE(file->find("w"), nullptr);
    EXPECT_EQ(file->tensors().size(), 1U);  // a newcomer's optimizer begins anew
  });
  expect(exchanger_, [](const SiteMoved& moved) {
    EXPECT_EQ(moved.site, 1U);
    EXPECT_EQ(moved.address, "tcp:there");
    return SiteAddress{};
  });
  expect(*site_, [](const SiteAddresses& addresses) -> caf::result<SiteReady, SiteMembers> {
    EXPECT_EQ(addresses.texts, (std::vector<std::string>{"tcp:here", ""}));
    EXPECT_EQ(addresses.first_step, 7);
    EXPECT_EQ(addresses.versions, std::vector<strategies::Version>{3});
    return {SiteReady{}, SiteMembers{}};
  });
  admission.receive(
      [](const Admission& admitted, const SiteMembers&, const OpenedSite&) { EXPECT_EQ(admitted.error, ""); }, failed);
}

TEST_F(RejoinManagerTest, WorkersGoOnWhileANewcomerCompiles) { admit_newcomer(); }

/// Its program may save its model: the node must not hear of the end of who ordered the site first.
TEST_F(RejoinManagerTest, TheEndInOrderAwaitsANewcomer) {
  admit_newcomer();
  self_->monitor(rejoin_manager_);
  self_->send(rejoin_manager_, Halt{true});
  expect(*site_, [](const Halt& halt) { EXPECT_TRUE(halt.in_order); });
  EXPECT_TRUE(self_->mailbox().empty()) << "it has not ended";
  site_.reset();
  expect(self_, [&](const caf::down_msg& end) { EXPECT_EQ(end.source, rejoin_manager_.address()); });
}

TEST_F(RejoinManagerTest, TheEndDoesNotWaitForACompilingNewcomer) {
  const auto before = running();
  self_->send(rejoin_manager_, Vacancy{0});
  caf::typed_response_promise<SiteReady> never;
  expect(*site_, [&](const CompileOrder&) -> caf::result<SiteReady> {
    never = (*site_)->make_response_promise<SiteReady>();
    return never;
  });
  expect_end_of_rejoin_manager(before);
  expect(*site_, [](const Halt&) {});  // the site ends when it has compiled
}

TEST_F(RejoinManagerTest, ANodeThatKeepsRefusingDoesNotDelayTheEnd) {
  orders_.refused = true;
  const auto before = running();
  self_->send(rejoin_manager_, Vacancy{0});
  expect(recorder_, [](const Note& note) { EXPECT_NE(note.text.find("no data"), std::string::npos) << note.text; });
  EXPECT_TRUE(tests::eventually([&] { return orders_.heard >= 3; }));
  EXPECT_LE(running(), before + 1);
  expect_end_of_rejoin_manager(before);
}

TEST_F(RejoinManagerTest, AFailedCompilationIsReportedAndRetried) {
  self_->send(rejoin_manager_, Vacancy{0});
  expect(*site_, [](const CompileOrder&) { return SiteReady{.error = "no memory"}; });
  expect(recorder_, [](const Note& note) {
    EXPECT_EQ(note.level, Note::Level::warning);
    EXPECT_NE(note.text.find("there:1"), std::string::npos) << note.text;
    EXPECT_NE(note.text.find("no memory"), std::string::npos) << note.text;
  });
  expect(*site_, [](const Halt&) {});
  expect(*site_, [&](const CompileOrder&) {
    EXPECT_TRUE(self_->mailbox().empty());
    return SiteReady{};
  });
  expect(self_, [](const Arrived& news) { EXPECT_EQ(news.worker, 0U); });
}

TEST_F(RejoinManagerTest, NodeThatDiedAfterItArrivedIsAskedAgainSoon) {
  self_->send(rejoin_manager_, Vacancy{0});
  expect(*site_, [](const CompileOrder&) { return SiteReady{}; });
  expect(self_, [](const Arrived& news) { EXPECT_EQ(news.worker, 0U); });
  const auto with_site = running();
  site_.reset();
  ASSERT_TRUE(tests::eventually([&] { return running() < with_site; }))
      << "the rejoin manager's side has not heard of it";

  const tests::Folder folder;
  auto admission = self_->request(rejoin_manager_, 60s, AdmissionOrder{0, write_checkpoint(folder), 7, {3}});
  expect(exchanger_, [](const StartPayload&) {});
  expect(exchanger_, [](const SiteMoved&) { return SiteAddress{}; });
  admission.receive([](const Admission& admitted, const SiteMembers&,
                       const OpenedSite&) { EXPECT_EQ(admitted.error, "its process no longer answers"); },
                    failed);
  EXPECT_TRUE(recorder_->mailbox().empty()) << "it is not there: nothing that it could be blamed for";
  const auto asked = orders_.heard.load();
  self_->send(rejoin_manager_, Vacancy{0});
  EXPECT_TRUE(tests::eventually([&] { return orders_.heard > asked; }));
}

}  // namespace
}  // namespace troupe::actors
