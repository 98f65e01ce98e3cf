// A replay that stops at a step or an event: what the members have become there.
#include "sim/replay/until.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/sim/replay/replayed.hpp"

namespace troupe::tests {
namespace {

using replay::ReachedState;
using Options = std::vector<std::string>;

core::Result<ReachedState> reached(const SmallRun& run, const std::string& place) {
  const auto until = replay::parse_until(place);
  if (!until) return tl::unexpected(until.error());
  return replay::replay_until({run.run_directory().string()}, *until, backend());
}

std::uint64_t hash_of(const replay::MemberState& member, const std::string& slot) {
  const auto found = std::ranges::find(member.vectors, slot, &replay::VectorState::slot);
  return found == member.vectors.end() ? 0 : found->hash;
}

/// Of two asynchronous workers that share the steps of a run: how many each takes is its luck.
std::string busiest(const experiment::Summary& summary) {
  return summary.per_worker.at(1).steps > summary.per_worker.at(0).steps ? "worker1" : "worker0";
}

// 1,200 samples, 2 workers of 20: 30 steps each in an epoch. Two epochs pass through the state with which one epoch ends.
TEST(ReplayUntil, AStepOfAllIsTheStateThatAShorterRunEndsWith) {
  for (const auto* strategy : {"bsp", "sync_easgd"}) {
    SmallRun one({std::string("strategy.name=") + strategy, "train.lr_policy=constant"});
    SmallRun two({std::string("strategy.name=") + strategy, "train.lr_policy=constant", "run.epochs=2"});
    const auto end_of_one = one.train(), end_of_two = two.train();
    ASSERT_FALSE(end_of_one.failed) << end_of_one.error.message;
    ASSERT_FALSE(end_of_two.failed) << end_of_two.error.message;
    ASSERT_NE(end_of_one.summary.center_hash, end_of_two.summary.center_hash);
    const auto middle = reached(two, "30");
    ASSERT_TRUE(middle) << middle.error().message;
    EXPECT_EQ(middle->center_hash, end_of_one.summary.center_hash) << strategy;
    EXPECT_EQ(middle->members.front().step, 30U);
    const auto end = reached(two, "60");
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(end->center_hash, end_of_two.summary.center_hash) << strategy;
  }
}

TEST(ReplayUntil, TheLastStepOfAnAsynchronousRunIsItsEnd) {
  SmallRun run({"strategy.name=easgd", "strategy.tau=2", "cluster.servers=2"});
  const auto end = run.train();
  ASSERT_FALSE(end.failed) << end.error.message;
  std::uint64_t last = 0;
  for (const auto& worker : end.summary.per_worker) last = std::max(last, worker.steps);
  const auto state = reached(run, std::to_string(last));
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->center_hash, end.summary.center_hash);
  EXPECT_EQ(state->members.size(), 4U) << "2 workers, 2 servers";
  EXPECT_GT(state->hashes, 0U);
  const auto beyond = reached(run, std::to_string(last + 1));
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, core::Errc::usage);
}

// Worker 1 takes three times as long: by its step 5 worker 0 has exchanged with the server, or sent to it, far behind its own step 5.
TEST(ReplayUntil, AStepOfAllIsReachedThoughWorkersAreNotEquallyFast) {
  for (const auto* strategy : {"easgd", "gossip", "ssp", "downpour"}) {
    SmallRun run({std::string("strategy.name=") + strategy, "cluster.synthetic_step_ms=4",
                  "cluster.slowdown=[1.0, 3.0]", "data.train_samples=600"});
    const auto end = run.train();
    ASSERT_FALSE(end.failed) << strategy << ": " << end.error.message;
    for (const std::uint64_t step : {1U, 5U}) {
      const auto state = reached(run, std::to_string(step));
      ASSERT_TRUE(state) << strategy << " " << step << ": " << state.error().message;
      const auto slow = std::ranges::find(state->members, "worker 1", &replay::MemberState::member);
      ASSERT_NE(slow, state->members.end());
      EXPECT_GE(slow->step.value_or(0), std::min(step, end.summary.per_worker.at(1).steps)) << strategy;
      const auto fast = std::ranges::find(state->members, "worker 0", &replay::MemberState::member);
      EXPECT_GE(fast->step.value_or(0), step) << strategy;
      EXPECT_FALSE(state->center_hash.empty());
      if (slow->step != step) continue;
      // The slow worker alone comes to the same.
      const auto alone = reached(run, "worker1:" + std::to_string(step));
      ASSERT_TRUE(alone) << strategy << " " << step << ": " << alone.error().message;
      EXPECT_EQ(hash_of(alone->members.front(), "params"), hash_of(*slow, "params")) << strategy;
    }
  }
}

TEST(ReplayUntil, TheStateOfAWorkerHasTheHashThatTheRunRecordedThere) {
  SmallRun run({"strategy.name=easgd", "strategy.tau=2", "run.hash_every=1"});
  const auto end = run.train();
  ASSERT_FALSE(end.failed);
  for (const auto& place : {busiest(end.summary) + ":3", "1/" + busiest(end.summary) + ":10"}) {
    const auto state = reached(run, place);
    ASSERT_TRUE(state) << state.error().message;
    ASSERT_EQ(state->members.size(), 1U);
    const auto& vectors = state->members.front().vectors;
    EXPECT_TRUE(std::ranges::any_of(vectors, [](const auto& vector) { return vector.recorded.has_value(); })) << place;
    for (const auto& vector : vectors) EXPECT_EQ(vector.recorded.value_or(vector.hash), vector.hash);
    EXPECT_TRUE(state->center_hash.empty());
  }
}

// The run records a hash of the centre at its end, behind the place. With s = 0 no worker is ahead of the place when another one needs it.
TEST(ReplayUntil, TheStateOfAServerIsThatOfTheEventsThatItHasConsumed) {
  SmallRun run({"strategy.name=ssp", "strategy.s=0"});
  ASSERT_FALSE(run.train().failed);
  const auto by_step = reached(run, "4");
  ASSERT_TRUE(by_step) << by_step.error().message;
  const auto& server = by_step->members.back();
  ASSERT_EQ(server.member, "server 0");
  for (const auto& vector : server.vectors) EXPECT_EQ(vector.recorded.value_or(vector.hash), vector.hash);
  const auto by_event = reached(run, "server0#" + std::to_string(server.events - 1));
  ASSERT_TRUE(by_event) << by_event.error().message;
  EXPECT_EQ(by_event->members.front().event, server.event);
  EXPECT_EQ(hash_of(by_event->members.front(), "center"), hash_of(server, "center"));
}

TEST(ReplayUntil, TheSameStateIsReachedByItsEvent) {
  SmallRun run({"strategy.name=easgd", "strategy.tau=3"});
  const auto end = run.train();
  ASSERT_FALSE(end.failed);
  const auto worker = busiest(end.summary);
  const auto by_step = reached(run, worker + ":7");
  ASSERT_TRUE(by_step) << by_step.error().message;
  const auto& member = by_step->members.front();
  EXPECT_EQ(member.step, 7U);
  const auto by_event = reached(run, worker + "#" + std::to_string(member.events - 1));
  ASSERT_TRUE(by_event) << by_event.error().message;
  EXPECT_EQ(by_event->members.front().events, member.events);
  EXPECT_EQ(hash_of(by_event->members.front(), "params"), hash_of(member, "params"));
  EXPECT_NE(hash_of(member, "params"), 0U);
  const auto later = reached(run, worker + ":8");
  ASSERT_TRUE(later);
  EXPECT_NE(hash_of(later->members.front(), "params"), hash_of(member, "params"));
}

TEST(ReplayUntil, EveryEventOfEveryMemberCanBeReached) {
  for (const auto* strategy : {"bsp", "easgd", "gossip", "ssp"}) {
    SmallRun run({std::string("strategy.name=") + strategy, "data.train_samples=200"});
    ASSERT_FALSE(run.train().failed);
    const auto whole = replayed(run);
    ASSERT_TRUE(whole) << whole.error().message;
    int all = 0;
    for (const auto* member : {"worker0", "worker1"})
      for (int event = 0; event < 12; ++event, ++all) {
        const auto state = reached(run, std::string(member) + "#" + std::to_string(event));
        if (!state && event > 0 && state.error().code == core::Errc::usage) break;  // it has made fewer
        ASSERT_TRUE(state) << strategy << " " << member << "#" << event << ": " << state.error().message;
        EXPECT_GT(state->members.front().events, static_cast<std::size_t>(event))
            << strategy << " " << member << ": " << replay::to_text(*state);
      }
    EXPECT_GE(all, 12) << strategy;
  }
  SmallRun run({"strategy.name=easgd", "data.train_samples=200"});
  ASSERT_FALSE(run.train().failed);
  const auto server = reached(run, "server0#0");
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_EQ(server->members.front().member, "server 0");
}

TEST(ReplayUntil, OfSeveralSessionsTheNewestThatHasIt) {
  SmallRun run({"strategy.name=bsp", "train.lr_policy=constant"});
  ASSERT_FALSE(run.train().failed);
  const auto end = run.resume({"run.epochs=2"});
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(reached(run, "45")->segment, 2);
  EXPECT_EQ(reached(run, "12")->segment, 1);
  EXPECT_EQ(reached(run, "60")->center_hash, end.summary.center_hash);
  EXPECT_FALSE(reached(run, "1/45"));
}

TEST(ReplayUntil, PlacesThatAreNoneAreRefused) {
  for (const auto* text :
       {"", "0", "x", "-1", "worker", "worker1", "worker1:", "worker1:0", "worker1:x", "workerx:1", "server0:3",
        "server#3", "0/3", "1/", "1/2/3", "worker1#-1", "shard0#1", "worker99999999999:1"})
    EXPECT_FALSE(replay::parse_until(text)) << text;
  for (const auto* text : {"40", "worker1:40", "worker1#0", "server12#31", "2/40", "2/worker1#31"}) {
    const auto until = replay::parse_until(text);
    ASSERT_TRUE(until) << text;
    EXPECT_EQ(replay::to_text(*until), text);
  }
}

TEST(ReplayUntil, MembersThatTheRunDoesNotHaveAreRefused) {
  SmallRun run({"strategy.name=easgd", "data.train_samples=200"});
  ASSERT_FALSE(run.train().failed);
  for (const auto* place : {"worker2:1", "server7#1", "worker0#1000000"}) {
    const auto state = reached(run, place);
    ASSERT_FALSE(state) << place;
    EXPECT_EQ(state.error().code, core::Errc::usage);
  }
}

TEST(ReplayUntil, ItsJsonHasEveryVector) {
  SmallRun run({"strategy.name=easgd", "data.train_samples=200"});
  ASSERT_FALSE(run.train().failed);
  const auto state = reached(run, "2");
  ASSERT_TRUE(state) << state.error().message;
  const auto json = nlohmann::json::parse(replay::to_json(*state));
  EXPECT_EQ(json["until"], "2");
  EXPECT_EQ(json["center_hash"], state->center_hash);
  EXPECT_EQ(json["members"][0]["member"], "worker 0");
  EXPECT_EQ(json["members"][0]["vectors"][0]["slot"], "params");
  EXPECT_NE(replay::to_text(*state).find("the model: xxh3:"), std::string::npos);
}

}  // namespace
}  // namespace troupe::tests
