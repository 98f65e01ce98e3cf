#include "strategies/host/server_host.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/strategies/scripted.hpp"

namespace troupe::strategies {
namespace {

using namespace std::chrono_literals;
using Calls = std::vector<std::string>;
using AnswerRequest = std::function<void(const Request&, ServerActions&)>;

struct Notes final : ServerObserver {
  void consumed(const ServerEvent& event) override { events.push_back(event); }
  void dropped(const Request& request, const std::string& why) override { drops.emplace_back(request.id, why); }
  void refused(const Request& request) override { refusals.push_back(request.id); }
  std::vector<ServerEvent> events;
  std::vector<std::pair<RequestId, std::string>> drops;
  std::vector<RequestId> refusals;
};

struct ServerStage {
  explicit ServerStage(ScriptedServer::Script script, ServerHostOptions options = {})
      : host(std::make_unique<ScriptedServer>(std::move(script)), port, std::move(options), &notes) {}
  explicit ServerStage(const AnswerRequest& answer)
      : ServerStage([answer](const ServerEvent& event, const ServerContext&, ServerActions& then) {
          if (const auto* request = std::get_if<Request>(&event)) answer(*request, then);
        }) {}
  NotingServerPort port;
  Notes notes;
  ServerHost host;
};

/// Holds every request; at deadline d answers request d; at deadline 100 + d drops it.
void holding(const ServerEvent& event, const ServerContext&, ServerActions& then) {
  if (const auto* request = std::get_if<Request>(&event)) then.hold(request->id);
  if (const auto* deadline = std::get_if<DeadlinePassed>(&event)) {
    if (deadline->id < 100) return then.reply(deadline->id, 17);
    then.drop(deadline->id - 100, "too late");
  }
}

/// The rule does not get a push with unusable numbers; such a push adds nothing.
TEST(ServerHost, RefusesNumbersThatCannotBeUsed) {
  ServerStage s([](const Request& request, ServerActions& then) {
    then.apply(axpy(kCenter, 1, kPayload), request.id), then.reply(request.id);
  });
  s.port.bad = {2, 3};
  for (const auto kind : {Transfer::push, Transfer::push, Transfer::pull})
    s.host.request({.id = s.host.totals().requests + 1, .kind = kind});
  EXPECT_EQ(s.port.calls, (Calls{"run on 1", "reply 1", "run on 2", "run on 2", "reply 2", "run on 3", "reply 3"}));
  EXPECT_EQ(s.port.kernels.at(1), fill(kPayload, 0));
  EXPECT_EQ(s.notes.refusals, std::vector<RequestId>{2}) << "a pull brings nothing";
  EXPECT_EQ(s.notes.events.size(), 3U);
  EXPECT_FALSE(s.port.replies.at(0).refused);
  EXPECT_TRUE(s.port.replies.at(1).refused);
  EXPECT_FALSE(s.port.replies.at(2).refused);
  EXPECT_EQ(s.host.totals().refused, 1U);
  EXPECT_EQ(s.host.totals().dropped, 0U);
}

TEST(ServerHost, AnswersCarryTheirExchangeVersionAndClock) {
  ServerStage s([](const Request& request, ServerActions& then) {
    then.apply(axpy(kCenter, 1, kPayload), request.id), then.reply(request.id, 5);
  });
  s.host.request({.id = 1, .worker = 3, .exchange = 8});
  EXPECT_EQ(s.port.calls, (Calls{"run on 1", "reply 1"}));
  const auto& reply = s.port.replies.at(0);
  EXPECT_EQ(reply.worker, 3U);
  EXPECT_EQ(reply.exchange, 8U);
  EXPECT_EQ(reply.version, 1U);
  EXPECT_EQ(reply.min_clock, 5U);
  EXPECT_FALSE(reply.dropped);
  EXPECT_EQ(s.host.open(), 0U);
  EXPECT_EQ(s.host.totals().requests, 1U);
  EXPECT_EQ(s.host.totals().replies, 1U);
  EXPECT_EQ(std::get<Request>(s.notes.events.at(0)).exchange, 8U);
}

TEST(ServerHost, EveryRequestIsAnsweredExactlyOnce) {
  const auto ask = [](const AnswerRequest& answer) {
    ServerStage s(answer);
    s.host.request({.id = 1});
  };
  EXPECT_THROW(ask([](const Request&, ServerActions&) {}), std::logic_error) << "not at all";
  EXPECT_THROW(ask([](const Request& r, ServerActions& then) { then.reply(r.id), then.reply(r.id); }), std::logic_error)
      << "twice";
  EXPECT_THROW(ask([](const Request& r, ServerActions& then) { then.reply(r.id), then.drop(r.id, "late"); }),
               std::logic_error);
  EXPECT_THROW(ask([](const Request& r, ServerActions& then) { then.reply(r.id), then.hold(r.id); }), std::logic_error);
  EXPECT_THROW(
      ask([](const Request& r, ServerActions& then) { then.reply(r.id), then.apply(fill(kPayload, 0), r.id); }),
      std::logic_error)
      << "worked on after it went back";
  EXPECT_THROW(ask([](const Request& r, ServerActions& then) { then.reply(r.id + 1); }), std::logic_error)
      << "one it does not have";
  EXPECT_THROW(ask([](const Request& r, ServerActions& then) { then.hold(r.id), then.apply(copy(kPayload, kCenter)); }),
               std::logic_error)
      << "a payload of nobody";
}

TEST(ServerHost, HeldRequestIsReleasedByALaterEvent) {
  ServerStage s(holding);
  s.host.request({.id = 1});
  s.host.request({.id = 2});
  EXPECT_EQ(s.host.open(), 2U);
  s.port.clock.advance(9ms);
  s.host.deadline_passed(2);
  EXPECT_EQ(s.port.calls, (Calls{"reply 2"}));
  EXPECT_EQ(s.port.replies.at(0).min_clock, 17U);
  EXPECT_EQ(s.port.replies.at(0).held, 9ms) << "also when no kernel ever ran on it";
  EXPECT_EQ(s.host.open(), 1U);
  EXPECT_THROW(s.host.deadline_passed(2), std::logic_error) << "answered before";
}

TEST(ServerHost, ADroppedRequestGoesBackAndIsCountedWithItsReason) {
  ServerStage s(holding);
  s.host.request({.id = 4});
  s.host.deadline_passed(104);
  EXPECT_TRUE(s.port.replies.at(0).dropped);
  EXPECT_EQ(s.host.totals().dropped, 1U);
  EXPECT_EQ(s.host.totals().replies, 1U);
  EXPECT_EQ(s.notes.drops, (std::vector<std::pair<RequestId, std::string>>{{4, "too late"}}));
  EXPECT_EQ(s.host.open(), 0U);
}

TEST(ServerHost, TheVersionCountsUpdatesOfTheCentre) {
  ServerStage s([](const ServerEvent& event, const ServerContext& context, ServerActions& then) {
    const auto* request = std::get_if<Request>(&event);
    if (!request) return;
    EXPECT_EQ(context.version, request->id == 1 ? 0U : request->id == 2 ? 0U : 3U);
    if (request->id == 1) then.apply(copy(kPayload, kCenter), request->id);  // reads the centre
    if (request->id == 2) {
      then.apply(axpy(kCenter, 1, kPayload), request->id);
      then.apply(scale(server_state(0), 0.9F));  // writes something else
      then.apply(scale(kCenter, 0.5F));
      then.apply(elastic_pair(kPayload, kCenter, 0.5F, 0.5F), request->id);
    }
    then.reply(request->id);
  });
  s.host.request({.id = 1});
  EXPECT_EQ(s.host.version(), 0U);
  s.host.request({.id = 2});
  EXPECT_EQ(s.host.version(), 3U);
  s.host.request({.id = 3});
  EXPECT_EQ(s.port.replies.back().version, 3U);
}

TEST(ServerHost, OneApplyOverManyRequestsRunsInTheirOrderAndIsOneVersion) {
  ServerStage s([](const Request& request, ServerActions& then) {
    then.hold(request.id);
    if (request.id < 3) return;
    then.apply(axpy(kCenter, 1, kPayload), {2, 1, 3});
    for (const RequestId id : {1, 2, 3}) then.reply(id);
  });
  for (const RequestId id : {1, 2, 3}) s.host.request({.id = id});
  EXPECT_EQ(s.port.calls, (Calls{"run on 2", "run on 1", "run on 3", "reply 1", "reply 2", "reply 3"}));
  EXPECT_EQ(s.host.version(), 1U);
}

TEST(ServerHost, StalenessIsTakenWhenARequestIsFirstWorkedOn) {
  // Each request adds itself and then takes the centre: the second kernel must not count the request's own update.
  ServerStage s(
      [](const ServerEvent& event, const ServerContext&, ServerActions& then) {
        const auto& request = std::get<Request>(event);
        then.apply(axpy(kCenter, 1, kPayload), request.id);
        then.apply(copy(kPayload, kCenter), request.id);
        then.reply(request.id);
      },
      {.version = 10});
  s.host.request({.id = 1, .version = 10});
  s.host.request({.id = 2, .version = 10});
  s.host.request({.id = 3, .version = 7});
  std::vector<Version> staleness;
  for (const auto& reply : s.port.replies) staleness.push_back(reply.staleness);
  EXPECT_EQ(staleness, (std::vector<Version>{0, 1, 5}));
}

TEST(ServerHost, HeldTimeIsWaitingForOthersNotKernels) {
  ServerStage s([](const Request& request, ServerActions& then) {
    then.hold(request.id);
    if (request.id < 2) return;
    then.apply(axpy(kCenter, 1, kPayload), {1, 2});
    then.reply(1), then.reply(2);
  });
  s.port.kernel_takes = 50ms;
  s.host.request({.id = 1});
  s.port.clock.advance(4ms);
  s.host.request({.id = 2});
  EXPECT_EQ(s.port.replies.at(0).held, 4ms);
  EXPECT_EQ(s.port.replies.at(1).held, 0ms);
}

TEST(ServerHost, ContextHasTheNewMembershipBeforeTheRulesEvent) {
  std::vector<std::size_t> sizes;
  ServerStage s([&](const ServerEvent&, const ServerContext& context,
                    ServerActions&) { sizes.push_back(context.membership.size()); },
                {.membership = {0, {0, 1, 2}}});
  s.host.deadline_passed(1);
  s.host.membership_changed({1, {0, 2}});
  EXPECT_EQ(sizes, (std::vector<std::size_t>{3, 2}));
}

TEST(ServerHost, DeadlinesGoToThePort) {
  ServerStage s([](const Request& request, ServerActions& then) { then.hold(request.id), then.set_deadline(12, 1s); });
  s.host.request({.id = 1});
  EXPECT_EQ(s.port.calls, (Calls{"deadline 12"}));
}

TEST(ServerHost, MisuseByAPortIsABug) {
  ServerStage s(holding);
  EXPECT_THROW(s.host.request({.id = 0}), std::logic_error) << "0 means no payload";
  EXPECT_THROW(s.host.request({.id = 1, .version = 1}), std::logic_error) << "a version that never was";
  s.host.request({.id = 1});
  EXPECT_THROW(s.host.request({.id = 1}), std::logic_error) << "the same request twice";
  EXPECT_EQ(s.host.totals().requests, 1U);

  ServerStage nested([](const Request& request, ServerActions& then) {
    then.apply(scale(kPayload, 2), request.id), then.reply(request.id);
  });
  nested.port.inside = [&] { nested.host.request({.id = 2}); };
  EXPECT_THROW(nested.host.request({.id = 1}), std::logic_error) << "a call from inside a call";
}

}  // namespace
}  // namespace troupe::strategies
