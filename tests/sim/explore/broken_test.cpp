/// The explorer must find strategies that break their own rule, and show the violation in a short schedule.
#include <gtest/gtest.h>

#include "sim/explore/exploration.hpp"
#include "strategies/registry/registry.hpp"

namespace troupe::explore {
namespace {

using Tamper = std::function<void(const ServerEvent& event, const ServerAction& said, ServerActions& then)>;

/// Changes the actions of the rule that it wraps.
class TamperedServer final : public ServerRule {
 public:
  TamperedServer(std::unique_ptr<ServerRule> half, Tamper tamper)
      : rule_(std::move(half)), tamper_(std::move(tamper)) {}
  void on(const Request& event, const ServerContext& context, ServerActions& then) override {
    tell(event, context, then);
  }
  void on(const MembershipChanged& event, const ServerContext& context, ServerActions& then) override {
    tell(event, context, then);
  }
  void refused(const Request& event, const ServerContext& context, ServerActions& then) override {
    ServerActions said;
    rule_->refused(event, context, said);
    for (const auto& action : said.list()) tamper_(event, action, then);
  }

 private:
  template <class Event>
  void tell(const Event& event, const ServerContext& context, ServerActions& then) {
    ServerActions said;
    rule_->on(event, context, said);
    for (const auto& action : said.list()) tamper_(event, action, then);
  }
  std::unique_ptr<ServerRule> rule_;
  Tamper tamper_;
};

/// A gossip worker that forgets the weight of a message that it could not send.
class Forgetful final : public WorkerRule {
 public:
  explicit Forgetful(std::unique_ptr<WorkerRule> half) : rule_(std::move(half)) {}
  void on(const StepDone& e, const WorkerContext& c, WorkerActions& then) override { rule_->on(e, c, then); }
  void on(const Stopped& e, const WorkerContext& c, WorkerActions& then) override { rule_->on(e, c, then); }
  void on(const PeerMessageArrived& e, const WorkerContext& c, WorkerActions& then) override { rule_->on(e, c, then); }
  [[nodiscard]] double weight() const noexcept override { return rule_->weight(); }

 private:
  std::unique_ptr<WorkerRule> rule_;
};

class Broken final : public Strategy {
 public:
  Broken(std::unique_ptr<Strategy> strategy, Tamper tamper)
      : strategy_(std::move(strategy)), tamper_(std::move(tamper)) {}
  Needs needs() const override { return strategy_->needs(); }
  std::unique_ptr<WorkerRule> worker() const override {
    if (needs().peers) return std::make_unique<Forgetful>(strategy_->worker());
    return strategy_->worker();
  }
  std::unique_ptr<ServerRule> server() const override {
    if (!needs().servers) return nullptr;
    return std::make_unique<TamperedServer>(strategy_->server(), tamper_);
  }

 private:
  std::unique_ptr<Strategy> strategy_;
  Tamper tamper_;
};

/// Explores the strategy, expects a violation that contains `what`, and returns the shortened schedule that shows it.
Shrunk expect_found(const std::string& strategy, const std::string& what, const Tamper& tamper = {},
                    std::uint32_t most_workers = 3) {
  const Maker make = [&](const core::Config& config, const RunShape& shape) {
    return strategies::make(config, shape).map([&](std::unique_ptr<Strategy> whole) -> std::unique_ptr<Strategy> {
      return std::make_unique<Broken>(std::move(whole), tamper);
    });
  };
  const auto all = explore({.runs = 300, .strategy = strategy, .make = make});
  if (!all || all->violations.empty()) {
    ADD_FAILURE() << strategy << " was not found out";
    return {};
  }
  const auto& found = all->violations.front();
  EXPECT_NE(found.shrunk.violation.find(what), std::string::npos) << to_text(found);
  EXPECT_EQ(run_schedule(draw_schedule(strategy, found.drawn.seed).value(), make)->violation.has_value(), true)
      << "the seed does not repeat it";
  EXPECT_EQ(run_schedule(found.shrunk.schedule, make)->violation, found.shrunk.violation);
  EXPECT_NE(to_text(found).find("troupe simulate --explore 1 --seed " + std::to_string(found.drawn.seed)),
            std::string::npos);
  EXPECT_FALSE(found.shrunk.event_log.empty());
  EXPECT_LE(found.shrunk.schedule.faults.size(), 2U) << to_text(found);
  EXPECT_LE(found.shrunk.schedule.workers, most_workers) << to_text(found);
  EXPECT_EQ(found.shrunk.schedule.servers, 1U) << to_text(found);
  return found.shrunk;
}

TEST(Broken, AShardThatAppliesALateGradientIsFoundOut) {
  expect_found("bsp", "was applied late", [](const ServerEvent&, const ServerAction& said, ServerActions& then) {
    const auto* drop = std::get_if<Drop>(&said);
    if (!drop) return then.add(said);
    then.apply(strategies::axpy(kCenter, -0.01F, kPayload), drop->request);
    then.reply(drop->request);
  });
}

TEST(Broken, AShardThatAppliesAPushTwiceIsFoundOut) {
  const auto shrunk = expect_found("downpour", "a push was applied twice",
                                   [](const ServerEvent&, const ServerAction& said, ServerActions& then) {
                                     then.add(said);
                                     const auto* apply = std::get_if<Apply>(&said);
                                     if (apply && writes(apply->call, kCenter)) then.add(said);
                                   });
  EXPECT_EQ(shrunk.schedule.workers, 1U) << "one push is enough";
  EXPECT_LE(shrunk.schedule.steps, 3U);
  EXPECT_TRUE(shrunk.schedule.faults.empty());
}

TEST(Broken, AShardThatLetsOthersReadTooEarlyIsFoundOut) {
  expect_found("ssp", "begins clock", [](const ServerEvent& event, const ServerAction& said, ServerActions& then) {
    const auto* request = std::get_if<Request>(&event);
    const auto* hold = std::get_if<Hold>(&said);
    if (hold && request && hold->request == request->id) {  // answers a request it should hold, as if complete
      then.apply(strategies::copy(kPayload, kCenter), request->id);
      return then.reply(request->id, request->clock);
    }
    if (request && request->kind == Transfer::push) then.add(said);
  });
}

/// The peers are drawn anew for every number of workers, so a smaller run may run out of credit later.
TEST(Broken, AWorkerThatLosesWeightIsFoundOut) { expect_found("gossip", "the weights of living workers", {}, 6); }

TEST(Broken, AShardThatMovesTheCentreTooFarIsFoundOut) {
  expect_found("easgd", "other than alpha d", [](const ServerEvent&, const ServerAction& said, ServerActions& then) {
    auto changed = said;
    if (auto* apply = std::get_if<Apply>(&changed)) apply->call.b *= 1.01F;
    then.add(changed);
  });
}

TEST(Broken, ARequestThatIsNeverAnsweredIsFoundOut) {
  expect_found("sync_easgd", "hangs", [](const ServerEvent&, const ServerAction& said, ServerActions& then) {
    if (!std::holds_alternative<Reply>(said)) then.add(said);
  });
}

/// A worker pushes infinity; no trace of it may be visible anywhere.
TEST(Broken, AShardThatUsesWhatCannotBeUsedIsFoundOut) {
  const auto is = [](const ServerAction& said, const KernelCall& call) {
    const auto* apply = std::get_if<Apply>(&said);
    return apply && apply->call == call;
  };
  // Only a refused push makes the rule copy the centre, or zeros.
  expect_found("easgd", "moved the centre", [&](const ServerEvent&, const ServerAction& said, ServerActions& then) {
    if (!is(said, strategies::copy(kPayload, kCenter))) then.add(said);
  });
  expect_found("ssp", "moved the centre", [&](const ServerEvent&, const ServerAction& said, ServerActions& then) {
    if (!is(said, strategies::fill(kPayload, 0))) then.add(said);
  });
  expect_found("local_sgd", "", [&](const ServerEvent&, const ServerAction& said, ServerActions& then) {
    if (!is(said, strategies::fill(kPayload, 0))) then.add(said);
  });
}

TEST(Broken, AShardThatAnswersARefusedPushTwiceOrNeverIsFoundOut) {
  expect_found("downpour", "hangs", [](const ServerEvent&, const ServerAction& said, ServerActions& then) {
    const auto* drop = std::get_if<Drop>(&said);
    drop ? then.hold(drop->request) : then.add(said);
  });
  expect_found("downpour", "answered before", [](const ServerEvent&, const ServerAction& said, ServerActions& then) {
    then.add(said);
    if (std::holds_alternative<Drop>(said)) then.add(said);
  });
}

}  // namespace
}  // namespace troupe::explore
