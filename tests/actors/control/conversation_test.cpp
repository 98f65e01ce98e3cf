// What two processes may send each other: every message between members, and no frame that would make CAF accept a forged identity.
#include "actors/control/conversation.hpp"

#include <gtest/gtest.h>

#include "actors/control/system.hpp"
#include "tests/actors/control/wire_frames.hpp"

namespace troupe::actors {
namespace {

using testing::client_handshake;
using testing::content;
using testing::frame;
using testing::in_wire_form;
using testing::message_type;
using testing::server_handshake;
using testing::test_node;

constexpr caf::actor_id kPublished = 40;
constexpr caf::actor_id kTheirs = 7;
constexpr std::uint64_t kAsync = caf::message_id::default_async_value;
constexpr std::uint64_t kRequest = kAsync | 5;
constexpr std::uint64_t kAnswer = caf::message_id::response_flag_mask | kRequest;

const caf::node_id kUs = test_node(1), kThem = test_node(2), kOthers = test_node(3);

/// A connection that another process has made to this process.
class AcceptedConversation : public ::testing::Test {
 protected:
  AcceptedConversation() : peers_(std::make_shared<ControlPeers>(in_wire_form(system_, kUs))), talk_(accepted("them")) {
    talk_.sent(server_handshake(system_, kUs, kPublished));
  }
  Conversation accepted(const std::string& certificate) {
    return Conversation(security::TlsSide::accepted, peers_, certificate);
  }
  std::string hears(const std::string& bytes) { return std::string(talk_.received(bytes).value_or("")); }
  void greet() { ASSERT_EQ(hears(client_handshake(system_, kThem)), ""); }
  template <class... Ts>
  std::string told(caf::actor_id to, const Ts&... parts) {
    return frame({.from = kTheirs, .to = to}, content(system_, parts...));
  }
  template <class... Ts>
  std::string asked(caf::actor_id to, const Ts&... parts) {
    return frame({.id = kRequest, .from = kTheirs, .to = to}, content(system_, parts...));
  }
  /// A handle of type `Handle` to an actor of another process.
  template <class Handle>
  Handle handle(const caf::node_id& node, caf::actor_id id) {
    // Only the handle's number and node matter; no message reaches it.
    struct Proxy final : caf::actor_proxy {
      explicit Proxy(caf::actor_config& config) : actor_proxy(config) {}
      void enqueue(caf::mailbox_element_ptr, caf::execution_unit*) override {}
      void kill_proxy(caf::execution_unit*, caf::error) override {}
    };
    caf::actor_config config;
    return caf::actor_cast<Handle>(caf::make_actor<Proxy, caf::strong_actor_ptr>(id, node, &system_, config));
  }

  SystemConfig config_;
  caf::actor_system system_{config_};
  std::shared_ptr<ControlPeers> peers_;
  Conversation talk_;
};

const std::string kNobodyElses = "it claims the node id of another process";
const std::string kNotItself = "it sends on behalf of another node";
const std::string kNoMessage = "it sent a message that is not part of the protocol";
const std::string kUnknown = "it sends to an actor that it was not given";
const std::string kUnasked = "it answers a request that was not made";

SiteOrder site_order(std::string config) {
  SiteOrder order;
  order.version = "1";
  order.run = "name";
  order.config = std::move(config);
  order.workers = {1, 2};
  order.secret = "s";
  return order;
}

TEST_F(AcceptedConversation, AcceptsMembersMessages) {
  greet();
  EXPECT_TRUE(talk_.greeted());
  EXPECT_EQ(hears(asked(kPublished, NodeQuery{})), "");
  EXPECT_EQ(hears(asked(kPublished, site_order(std::string(10'000, 'x')))), "");
  EXPECT_EQ(hears(told(kPublished, LeaseRequest{1, 2}) + told(kPublished, RunError{core::Errc::io, "text", 3})), "");
  EXPECT_EQ(hears(told(kPublished, JournalRecords{{1, 2}, {3, 4}, {'a', 'b'}})), "");
  EXPECT_EQ(hears(told(kPublished, WorkerProgress{.worker = 1, .loss = 0.5, .staleness = {1, 2}, .waits = {0.25}})),
            "");
  EXPECT_EQ(hears(told(kPublished, LeaseGrant{{data::Lease{1, 2, 3, 4, 0.5}}, true})), "");
  EXPECT_EQ(hears(asked(kPublished, MeasureOrder{{1}, {2}, {3, 4}, {"asa", "ring"}, 5})), "");
  EXPECT_EQ(hears(asked(kPublished, SiteAddresses{{"tcp:a", ""}, -1, {5, 6}})), "");
  EXPECT_EQ(hears(frame({.type = message_type::heartbeat, .id = 0}, "")), "");
  EXPECT_EQ(hears(frame({.type = message_type::monitor_message, .id = 0, .to = kPublished},
                        in_wire_form(system_, kThem, kUs))),
            "");
  // CAF's own message: after a connection to a node, CAF looks for that node's spawn server.
  EXPECT_EQ(hears(frame({.flags = 1, .from = kTheirs, .to = static_cast<std::uint64_t>(caf::atom("SpawnServ"))},
                        "whatever it says")),
            "");
}

TEST_F(AcceptedConversation, MessagesInPiecesAreReadAsWhole) {
  const auto all = client_handshake(system_, kThem) + asked(kPublished, NodeQuery{}) +
                   told(kPublished, LeaseRequest{1, 2}) + asked(99, NodeQuery{});
  for (std::size_t k = 0; k + 1 < all.size(); ++k) ASSERT_EQ(hears(all.substr(k, 1)), "") << k;
  EXPECT_EQ(hears(all.substr(all.size() - 1)), kUnknown);
}

TEST_F(AcceptedConversation, ClaimingAnotherNodesIdIsRefused) {
  greet();
  auto second = accepted("them");
  EXPECT_FALSE(second.received(client_handshake(system_, kThem)));  // CAF may make a second connection
  auto liar = accepted("somebody else");
  EXPECT_EQ(liar.received(client_handshake(system_, kThem)), kNobodyElses);
  auto other = accepted("somebody else");
  EXPECT_FALSE(other.received(client_handshake(system_, kOthers)));
  EXPECT_EQ(hears(client_handshake(system_, kOthers)), "its second handshake names another node than its first");
}

TEST_F(AcceptedConversation, ANodeIdIsFreeAfterItsLastConnectionEnds) {
  {
    auto first = accepted("first");
    EXPECT_FALSE(first.received(client_handshake(system_, kOthers)));
  }
  auto second = accepted("second");
  EXPECT_FALSE(second.received(client_handshake(system_, kOthers)));
}

TEST_F(AcceptedConversation, ClaimingThisProcessesNodeIdIsRefused) {
  EXPECT_EQ(hears(client_handshake(system_, kUs)), "");  // CAF ends such a connection itself
  EXPECT_EQ(hears(asked(kPublished, NodeQuery{})), kNobodyElses);
}

TEST_F(AcceptedConversation, RoutedMessagesAreRefused) {
  greet();
  EXPECT_EQ(hears(frame({.type = message_type::routed_message, .from = kTheirs, .to = kPublished},
                        in_wire_form(system_, kOthers, kUs) + content(system_, NodeQuery{}))),
            kNotItself);
}

TEST_F(AcceptedConversation, ReportingTheEndOfAnotherNodesActorsIsRefused) {
  greet();
  const auto down = [this](const caf::node_id& from, const caf::node_id& to) {
    return frame({.type = message_type::down_message, .id = 0, .from = kTheirs},
                 in_wire_form(system_, from, to, caf::make_error(caf::exit_reason::user_shutdown)));
  };
  EXPECT_EQ(hears(down(kThem, kUs)), "");
  EXPECT_EQ(hears(down(kOthers, kUs)), kNotItself);
}

TEST_F(AcceptedConversation, MonitoringAnotherNodesActorsIsRefused) {
  greet();
  EXPECT_EQ(hears(frame({.type = message_type::monitor_message, .id = 0, .to = kPublished},
                        in_wire_form(system_, kOthers, kUs))),
            kNotItself);
}

TEST_F(AcceptedConversation, OnlyIntroducedActorsReceiveMessages) {
  greet();
  const auto site = handle<SiteActor>(kUs, 51);
  talk_.sent(frame({.id = kAnswer, .from = kPublished, .to = kTheirs},
                   content(system_, SiteOpened{"tcp:x"}, OpenedSite{site})));
  EXPECT_EQ(hears(asked(51, CompileOrder{})), "");
  const SiteMembers members{{handle<WorkerActor>(kUs, 52)}, {handle<LoaderActor>(kUs, 53)}, {}};
  talk_.sent(frame({.id = kAnswer, .from = 51, .to = kTheirs}, content(system_, SiteReady{}, members)));
  EXPECT_EQ(hears(asked(52, UpdatesOrder{}) + told(53, LeaseGrant{})), "");
  EXPECT_EQ(hears(told(54, Halt{})), kUnknown);
}

TEST_F(AcceptedConversation, SendingAMessageDoesNotIntroduceTheSender) {
  greet();
  talk_.sent(frame({.id = kRequest, .from = 60, .to = kTheirs}, content(system_, UpdatesOrder{})));
  EXPECT_EQ(hears(told(60, Halt{})), kUnknown);
}

TEST_F(AcceptedConversation, EachRequestIsAnsweredAtMostOnce) {
  greet();
  talk_.sent(frame({.id = kRequest, .from = 60, .to = kTheirs}, content(system_, UpdatesOrder{})));
  const auto answer = frame({.id = kAnswer, .from = kTheirs, .to = 60}, content(system_, Updates{3}));
  EXPECT_EQ(hears(answer), "");
  EXPECT_EQ(hears(answer), kUnasked);
}

TEST_F(AcceptedConversation, AnErrorAnswersARequest) {
  greet();
  talk_.sent(frame({.id = kRequest, .from = 60, .to = kTheirs}, content(system_, UpdatesOrder{})));
  talk_.sent(frame({.id = kRequest, .from = 61, .to = kTheirs}, content(system_, UpdatesOrder{})));
  const caf::error plain = caf::sec::runtime_error, worded = caf::make_error(caf::sec::runtime_error, "why");
  EXPECT_EQ(hears(frame({.id = kAnswer, .from = kTheirs, .to = 60}, content(system_, plain))), "");
  EXPECT_EQ(hears(frame({.id = kAnswer, .from = kTheirs, .to = 61}, content(system_, worded))), "");
}

/// CAF sends such an answer for an actor that has ended.
TEST_F(AcceptedConversation, AnAnswerFromAnotherNodeIsRefused) {
  greet();
  talk_.sent(frame({.id = kRequest, .from = 60, .to = kTheirs}, content(system_, UpdatesOrder{})));
  const caf::error gone = caf::sec::request_receiver_down;
  EXPECT_EQ(hears(frame({.id = kAnswer, .from = 0, .to = 60}, content(system_, gone))), "");
  EXPECT_EQ(hears(frame({.id = kAnswer, .from = 0, .to = 60}, content(system_, gone))), kUnasked);
}

TEST_F(AcceptedConversation, AnErrorMayNotHoldFurtherMessages) {
  greet();
  talk_.sent(frame({.id = kRequest, .from = 60, .to = kTheirs}, content(system_, UpdatesOrder{})));
  caf::error nested = caf::sec::runtime_error;
  for (int k = 0; k < 3; ++k) nested = caf::make_error(caf::sec::runtime_error, nested);
  EXPECT_EQ(hears(frame({.id = kAnswer, .from = kTheirs, .to = 60}, content(system_, nested))), kNoMessage);
}

TEST_F(AcceptedConversation, AnAnswerToAnotherProcessesRequestIsRefused) {
  greet();
  auto other = accepted("others");
  ASSERT_FALSE(other.received(client_handshake(system_, kOthers)));
  talk_.sent(frame({.id = kRequest, .from = 60, .to = kTheirs}, content(system_, UpdatesOrder{})));
  EXPECT_EQ(other.received(frame({.id = kAnswer, .from = kTheirs, .to = 60}, content(system_, Updates{3}))), kUnasked);
}

TEST_F(AcceptedConversation, TheTwoConnectionsOfANodeAreOneConversation) {
  greet();
  auto second = accepted("them");
  ASSERT_FALSE(second.received(client_handshake(system_, kThem)));
  talk_.sent(frame({.id = kRequest, .from = 60, .to = kTheirs}, content(system_, UpdatesOrder{})));
  EXPECT_FALSE(second.received(frame({.id = kAnswer, .from = kTheirs, .to = 60}, content(system_, Updates{3}))));
}

TEST_F(AcceptedConversation, MessagesWithoutASenderAreRefused) {
  greet();
  EXPECT_EQ(hears(frame({.from = 0, .to = kPublished}, content(system_, Halt{}))), kNoMessage);
}

TEST_F(AcceptedConversation, OnlyKnownActorsAreMonitoredAndOnlyUntilTheyEnd) {
  greet();
  const auto watch = [this](caf::actor_id whom) {
    return frame({.type = message_type::monitor_message, .id = 0, .to = whom}, in_wire_form(system_, kThem, kUs));
  };
  talk_.sent(frame({.from = 60, .to = kTheirs}, content(system_, UpdatesOrder{})));
  EXPECT_EQ(hears(watch(60)), "");  // CAF monitors every actor that has sent it a message
  for (std::uint32_t k = 0; k < ControlPeer::kMostWatches; ++k) ASSERT_EQ(hears(watch(kPublished)), "") << k;
  EXPECT_EQ(hears(watch(kPublished)), "it monitors one actor more than 64 times");
  auto other = accepted("others");
  ASSERT_FALSE(other.received(client_handshake(system_, kOthers)));
  EXPECT_EQ(other.received(
                frame({.type = message_type::monitor_message, .id = 0, .to = 60}, in_wire_form(system_, kOthers, kUs))),
            "it monitors an actor that it was not given");
}

TEST_F(AcceptedConversation, APeerThatDoesNotReadItsAnswersIsDisconnected) {
  greet();
  const auto ask = [this](std::uint64_t number) {
    return frame({.id = kAsync | number, .from = kTheirs, .to = kPublished}, content(system_, NodeQuery{}));
  };
  for (std::uint64_t k = 1; k <= 3 * ControlPeer::kMostRequests; ++k) {
    ASSERT_EQ(hears(ask(k)), "") << k;
    talk_.sent(frame({.id = caf::message_id::response_flag_mask | kAsync | k, .from = kPublished, .to = kTheirs},
                     content(system_, NodeFacts{})));
  }
  for (std::uint64_t k = 1; k <= ControlPeer::kMostRequests; ++k) ASSERT_EQ(hears(ask(k)), "") << k;
  EXPECT_EQ(hears(ask(5)), "it has more than 1024 unread answers");
}

TEST_F(AcceptedConversation, ActorsInAMessageAreTheSendersOwn) {
  greet();
  SiteDirectory actors;
  actors.coordinator = handle<CoordinatorActor>(kThem, 70);
  actors.recorder = handle<RecorderActor>(kThem, 71);
  EXPECT_EQ(hears(asked(kPublished, actors)), "");
  actors.recorder = handle<RecorderActor>(kOthers, 71);
  EXPECT_EQ(hears(asked(kPublished, actors)), kNotItself);
}

/// Types that CAF can read, or that actors send each other within a process.
TEST_F(AcceptedConversation, MessagesThatNoMemberSendsAreRefused) {
  const caf::actor_addr nobody;
  const std::vector<std::string> payloads{
      content(system_, caf::exit_msg{nobody, caf::exit_reason::kill}),
      content(system_, caf::down_msg{nobody, caf::exit_reason::kill}),
      content(system_, caf::make_error(caf::sec::runtime_error)),
      content(system_, caf::make_message(caf::make_message(1))),
      content(system_, caf::spawn_atom_v, std::string("worker"), caf::make_message()),
      content(system_, 5),
      content(system_),
      content(system_, NodeQuery{}),  // sent without a request id: its answer would have no receiver
      content(system_, Interrupt{}),
      content(system_, StepOrder{}),
      content(system_, Tick{}),
      content(system_, RunStarted{}),
      content(system_, LeaseRequest{}, LeaseRequest{}),
      content(system_, Updates{3}),  // an answer without a request
      in_wire_form(system_, std::vector<caf::strong_actor_ptr>{handle<caf::strong_actor_ptr>(kThem, 4)},
                   caf::make_message(NodeQuery{})),
  };
  for (std::size_t k = 0; k < payloads.size(); ++k) {
    auto talk = accepted("them");
    ASSERT_FALSE(talk.received(client_handshake(system_, kThem)));
    EXPECT_EQ(talk.received(frame({.from = kTheirs, .to = kPublished}, payloads[k])), kNoMessage) << k;
  }
}

/// CAF allocates a vector of bytes at the length that the message states: here that would be four exbibytes.
TEST_F(AcceptedConversation, InvalidLengthsAreRefusedUnread) {
  auto bytes = content(system_, JournalRecords{{1}, {2}, {'a', 'b'}});
  ASSERT_EQ(bytes.substr(bytes.size() - 3), std::string("\x02"
                                                        "ab"));
  for (const std::string& length : {std::string("\x03"), std::string("\xff\xff\xff\xff\x0f"),
                                    std::string("\xff\xff\xff\xff\xff\xff\xff\xff\x3f"), std::string(100, '\xff')}) {
    auto talk = accepted("them");
    ASSERT_FALSE(talk.received(client_handshake(system_, kThem)));
    const auto lie = bytes.substr(0, bytes.size() - 3) + length + "ab";
    EXPECT_EQ(talk.received(frame({.from = kTheirs, .to = kPublished}, lie)), kNoMessage) << length.size();
  }
}

TEST_F(AcceptedConversation, TruncatedAndOverlongMessagesAreRefused) {
  const auto whole = content(system_, site_order("c"));
  for (std::size_t size = 1; size <= whole.size() + 1; ++size) {
    auto talk = accepted("them");
    ASSERT_FALSE(talk.received(client_handshake(system_, kThem)));
    const auto cut = size <= whole.size() ? whole.substr(0, size) : whole + "x";
    const auto verdict = talk.received(frame({.id = kRequest, .from = kTheirs, .to = kPublished}, cut));
    EXPECT_EQ(verdict.has_value(), size != whole.size()) << size;
  }
}

TEST_F(AcceptedConversation, TheNumberOfActorsOfAPeerIsLimited) {
  greet();
  for (caf::actor_id id = 1; id <= 2 * ControlPeer::kMostActors; ++id) {
    const auto said = hears(frame({.from = id, .to = kPublished}, content(system_, Halt{})));
    if (id <= ControlPeer::kMostActors) {
      ASSERT_EQ(said, "") << id;
    } else {
      EXPECT_EQ(said, "it uses more than 4096 actors");
      return;
    }
  }
}

TEST_F(AcceptedConversation, EndedActorsDoNotCountAgainstTheLimit) {
  greet();
  for (caf::actor_id id = 1; id <= 3 * ControlPeer::kMostActors; ++id) {
    ASSERT_EQ(hears(frame({.from = id, .to = kPublished}, content(system_, Halt{}))), "") << id;
    ASSERT_EQ(hears(frame({.type = message_type::down_message, .id = 0, .from = id},
                          in_wire_form(system_, kThem, kUs, caf::error{}))),
              "");
  }
}

TEST_F(AcceptedConversation, ADialledConnectionBelongsToItsNode) {
  Conversation dialled(security::TlsSide::dialled, peers_, "them");
  EXPECT_FALSE(dialled.received(server_handshake(system_, kThem, 3)));
  dialled.sent(client_handshake(system_, kUs));
  dialled.sent(frame({.id = kRequest, .from = 60, .to = 3}, content(system_, NodeQuery{})));
  EXPECT_FALSE(dialled.received(frame({.id = kAnswer, .from = 3, .to = 60}, content(system_, NodeFacts{}))));
  SiteDirectory actors;
  actors.coordinator = handle<CoordinatorActor>(kUs, 80);
  actors.recorder = handle<RecorderActor>(kUs, 81);
  dialled.sent(frame({.id = kRequest, .from = 60, .to = 3}, content(system_, actors)));
  EXPECT_FALSE(dialled.received(frame({.from = 9, .to = 80}, content(system_, LeaseRequest{1, 2}))));
  EXPECT_EQ(dialled.received(frame({.from = 9, .to = 60}, content(system_, LeaseRequest{1, 2}))), kUnknown);
}

}  // namespace
}  // namespace troupe::actors
