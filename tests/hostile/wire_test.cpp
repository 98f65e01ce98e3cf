// Control plane input, changed at random: either it ends the connection, or CAF can read it safely and it names no actor of another
// process. Without sockets, so that a million messages are affordable.
#include <gtest/gtest.h>

#include "actors/control/conversation.hpp"
#include "actors/control/system.hpp"
#include "tests/actors/control/wire_frames.hpp"
#include "tests/hostile/budget.hpp"

namespace troupe::hostile {
namespace {

using namespace actors;
using actors::testing::client_handshake;
using actors::testing::content;
using actors::testing::frame;
using actors::testing::in_wire_form;
using actors::testing::message_type;
using actors::testing::server_handshake;
using actors::testing::test_node;

constexpr caf::actor_id kPublished = 40;

/// One of each message that may travel between processes, and many that may not.
std::vector<std::string> contents(caf::actor_system& system) {
  const data::Lease lease{1, 2, 3, 4, 0.5};
  SiteOrder order;
  order.version = "1";
  order.run = "run";
  order.config = std::string(500, 'x');
  order.site = 1;
  order.workers = {0, 1};
  order.servers = {0};
  order.plan = "{}";
  order.secret = "s";
  SiteDirectory actors;
  actors.worker_sites = {1, 2};
  actors.server_sites = {0};
  actors.members = {0, 1};
  actors.exchange = "{}";
  NodeFacts facts;
  facts.version = "1";
  facts.endpoints = {"tcp", "shm"};
  facts.members = {"worker 1"};
  return {
      content(system, NodeQuery{}),
      content(system, GpuQuery{}),
      content(system, order),
      content(system, CompileOrder{}),
      content(system, SiteAddresses{{"tcp:a", "", "tcp:b"}, 5, {1, 2}}),
      content(system, actors),
      content(system, MeasureOrder{{1}, {2}, {3, 4}, {"asa", "ring"}, 5}),
      content(system, Halt{}),
      content(system, Prepare{}),
      content(system, MembershipNews{1, {0, 1, 2}}),
      content(system, Dismissal{}),
      content(system, UpdatesOrder{}),
      content(system, SettleOrder{}),
      content(system, StateOrder{}),
      content(system, LeaseGrant{{lease, lease}, true}),
      content(system, LeaseRequest{1, 2}),
      content(system,
              WorkerProgress{.worker = 1, .loss = 0.5, .staleness = {1, 2}, .waits = {0.25, 1}, .done = {1, 2, 3}}),
      content(system, RunError{core::Errc::io, "text", 3}),
      content(system, SiteLost{1, 2, "text"}),
      content(system, TransferNews{{0, 1}}),
      content(system, Note{Note::Level::warning, "text"}),
      content(system, PeerMessageCountsOrder{{{1, 2}}}),
      content(system,
              PeerMessageCounts{.weight = 0.5, .sent = {{1, 2}}, .unread = {{1, 0.5}}, .slots = {strategies::kParams}}),
      content(system, JournalRecords{{1, 2}, {3, 4}, {'a', 'b', 'c'}}),
      content(system, facts),
      content(system, SiteOpened{.address = "tcp:a"}),
      content(system, SiteReady{.error = "e"}, SiteMembers{}),
      content(system, Measured{{0.5, 1}, "", core::Errc::io}),
      content(system, MemberState{"state", 3, {{1, 0.5}}, {strategies::kParams}}),
      content(system, caf::make_error(caf::sec::runtime_error, "why")),
      content(system, caf::exit_msg{{}, caf::exit_reason::kill}),
      content(system, caf::down_msg{{}, caf::exit_reason::kill}),
      content(system, caf::make_message(1, "two")),
      content(system, std::vector<char>(20), std::string("x")),
      content(system, caf::spawn_atom_v, std::string("worker")),
  };
}

/// Deserialises an accepted payload as CAF does: first the forwarding stack, which is empty.
void read_as_caf_does(caf::actor_system& system, const std::string& payload) {
  const std::vector<char> bytes(payload.begin(), payload.end());
  caf::binary_deserializer source(system, bytes);
  std::vector<caf::strong_actor_ptr> stages;
  caf::message message;
  (void)source(stages, message);  // an error is allowed: it does not end the process
}

TEST(HostileWire, AcceptedMessagesAreHarmlessToRead) {
  Dice dice("HostileWire");
  SystemConfig config;
  caf::actor_system system(config);
  const auto us = test_node(1), them = test_node(2), others = test_node(3);
  const auto wanted = contents(system);
  const auto peers = std::make_shared<ControlPeers>(in_wire_form(system, us));
  const auto count = messages(30);
  std::uint64_t said = 0, passed = 0, before = 0;
  for (std::uint64_t life = 0; said < count; ++life) {
    if (life == 1000) before = resident();
    const auto side = dice.one_in(2) ? security::TlsSide::accepted : security::TlsSide::dialled;
    Conversation talk(side, peers, "them");
    const bool accepted = side == security::TlsSide::accepted;
    if (accepted) talk.sent(server_handshake(system, us, kPublished));
    auto greeting = accepted ? client_handshake(system, them) : server_handshake(system, them, 3);
    if (dice.one_in(20)) dice.damage(greeting);
    ++said;
    if (talk.received(greeting)) continue;
    std::set<std::pair<caf::actor_id, std::uint64_t>> asked;
    for (std::uint64_t k = 0; k < 4; ++k) {
      asked.emplace(60 + k, 5 + k);
      talk.sent(frame({.id = caf::message_id::default_async_value | (5 + k), .from = 60 + k, .to = 3},
                      content(system, UpdatesOrder{})));
    }
    for (bool well = true; well && said < count; ++said) {
      auto payload = wanted[dice.below(wanted.size())];
      if (dice.one_in(3)) dice.damage(payload);
      actors::testing::FrameFields fields{.from = 1 + dice.below(100), .to = kPublished};
      if (dice.one_in(4)) fields.type = static_cast<message_type>(dice.below(9));
      if (dice.one_in(8)) fields.flags = dice.number<std::uint8_t>();
      if (dice.one_in(2)) fields.id |= 1 + dice.below(1000);
      if (dice.one_in(4)) fields.id = dice.number<std::uint64_t>();
      if (dice.one_in(4))
        fields = {
            .id = caf::message_id::response_flag_mask | caf::message_id::default_async_value | (5 + dice.below(6)),
            .from = 3,
            .to = 60 + dice.below(6)};
      if (dice.one_in(8)) fields.to = dice.number<std::uint64_t>();
      if (dice.one_in(8)) fields.from = dice.number<std::uint64_t>();
      if (fields.type == message_type::monitor_message || fields.type == message_type::down_message) {
        payload = in_wire_form(system, dice.one_in(4) ? others : them, dice.one_in(8) ? others : us);
        if (fields.type == message_type::down_message)
          payload += in_wire_form(system, caf::make_error(caf::sec::runtime_error));
        if (dice.one_in(4)) dice.damage(payload);
      }
      if (fields.type == message_type::heartbeat && !dice.one_in(8)) payload.clear();
      if (fields.type == message_type::client_handshake) payload = in_wire_form(system, dice.one_in(2) ? them : others);
      auto bytes = frame(fields, payload);
      if (dice.one_in(16)) dice.damage(bytes);
      // In one piece or in two.
      const auto cut = dice.below(bytes.size() + 1);
      well = !talk.received(std::span(bytes).first(cut)) && !talk.received(std::span(bytes).subspan(cut));
      if (!well || bytes.size() != FrameGuard::kHeaderBytes + payload.size()) continue;
      if (fields.type == message_type::direct_message && fields.flags == 0) {
        ++passed;
        read_as_caf_does(system, bytes.substr(FrameGuard::kHeaderBytes));
      }
    }
  }
  EXPECT_GT(passed, count / 100);  // otherwise the test has tried too little
  if (before > 0) {
    EXPECT_LT(resident(), before + kMostGrowth);
  }
  EXPECT_EQ(peers->claim(in_wire_form(system, test_node(9)), "x").use_count(), 1);
}

}  // namespace
}  // namespace troupe::hostile
