// Membership news and orders that reach a member before it has received the actor directory.
#include <gtest/gtest.h>

#include "actors/control/system.hpp"
#include "actors/exchanger/exchanger.hpp"
#include "actors/server/server.hpp"
#include "core/buffer.hpp"
#include "experiment/run_spec.hpp"
#include "strategies/host/state_text.hpp"
#include "tests/actors/small_run.hpp"
#include "transport/inproc/endpoint.hpp"

namespace troupe::actors {
namespace {

constexpr std::chrono::seconds kPatience{60};

void failed(const caf::error& error) { ADD_FAILURE() << caf::to_string(error); }

class EarlyNews : public ::testing::Test {
 protected:
  /// Two workers, the second at a site of its own. The test plays all other members.
  ActorDirectory actors() {
    ActorDirectory actors;
    actors.coordinator = caf::actor_cast<CoordinatorActor>(self_);
    actors.recorder = caf::actor_cast<RecorderActor>(self_);
    actors.workers.assign(2, caf::actor_cast<WorkerActor>(self_));
    actors.loaders.assign(2, caf::actor_cast<LoaderActor>(self_));
    actors.servers.assign(1, caf::actor_cast<ServerActor>(self_));
    actors.worker_sites = {0, 1};
    actors.server_sites = {0};
    return actors;
  }

  core::SteadyClock clock_;
  core::HostAllocator memory_;
  SystemConfig config_;
  caf::actor_system system_{config_};
  caf::scoped_actor self_{system_};
};

// Otherwise the server would wait for the clock of a lost worker: the coordinator sends each news once.
TEST_F(EarlyNews, ServerThatBeginsKnowsEarlierLosses) {
  const tests::SmallRun run({"strategy.name=ssp"});
  const auto spec = *experiment::build_run_spec(*run.settings(), true);
  const auto server = system_.spawn(actors::server, ServerSetup{.workers = 2,
                                                                .strategy = spec.strategy,
                                                                .kernels = &tests::backend().kernels(),
                                                                .memory = {},
                                                                .journal = false,
                                                                .clock = &clock_});
  self_->send(server, MembershipNews{1, {0}});
  self_->send(server, actors());
  self_->request(server, kPatience, StateOrder{})
      .receive(
          [](const MemberState& state) {
            std::map<std::uint32_t, strategies::Step> clocks;
            std::vector<strategies::WorkerId> members;
            const auto read = strategies::read_state(state.state, {{"clocks", &clocks}, {"members", &members}});
            ASSERT_TRUE(read) << read.error().message;
            EXPECT_EQ(members, std::vector<strategies::WorkerId>{0});
          },
          failed);
  self_->send(server, Halt{});
  self_->wait_for(server);
}

// Otherwise the exchanger would keep calling a site that no longer exists.
TEST_F(EarlyNews, ExchangerThatBeginsLeavesTheSiteThatIsLost) {
  const auto hub = transport::make_inproc_hub();
  std::vector<ExchangerActor> exchangers;
  SiteAddresses addresses;
  for (std::uint32_t site = 0; site < 2; ++site) {
    ExchangerSetup setup{.site = site, .most_floats = 64, .kernels = &tests::backend().kernels()};
    setup.options.hub = hub;
    setup.exchange.endpoint = "inproc";
    setup.memory = &memory_;
    setup.clock = &clock_;
    exchangers.push_back(system_.spawn<caf::detached>(exchanger, std::move(setup)));
    self_->request(exchangers.back(), kPatience, Prepare{})
        .receive([&](const SiteAddress& address, const SiteMemory&) { addresses.texts.push_back(address.text); },
                 failed);
  }
  for (const auto& exchanger : exchangers) self_->send(exchanger, addresses);
  self_->send(exchangers[0], MembershipNews{1, {0}});
  self_->send(exchangers[0], actors());
  auto space = std::make_shared<core::Buffer>(std::move(*core::Buffer::allocate(memory_, 64)));
  self_
      ->request(exchangers[0], kPatience, MemberSnapshot{false, 1, SnapshotOrder{1, strategies::kParams}},
                BorrowedView{space->view(), space})
      .receive([](const SnapshotTaken&) { ADD_FAILURE() << "the other site has not begun"; },
               [this](const caf::error& error) {
                 EXPECT_NE(system_.render(error).find("site 1 is gone"), std::string::npos) << system_.render(error);
               });
  for (const auto& exchanger : exchangers) self_->send(exchanger, Halt{});
  for (const auto& exchanger : exchangers) self_->wait_for(exchanger);
}

}  // namespace
}  // namespace troupe::actors
