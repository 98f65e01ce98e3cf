// Which orders of the coordinator's process a site at a node accepts.
#include "actors/deployment/site_order_checks.hpp"

#include <functional>

#include <gtest/gtest.h>

#include "actors/control/system.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::actors {
namespace {

/// A run of three workers at sites 1 to 3, with two shards at site 0; this is site 2.
class SiteOrders : public ::testing::Test {
 protected:
  SiteOrders()
      : run_({"strategy.name=easgd", "cluster.workers=3", "cluster.servers=2", "exchange.endpoint=tcp"}),
        spec_(experiment::build_run_spec(run_.settings().value(), true).value()) {}
  [[nodiscard]] static SiteOrder order() {
    SiteOrder order;
    order.site = 2;
    order.workers = {1};
    order.most_floats = 1000;
    return order;
  }
  [[nodiscard]] static ExchangePlan exchange() {
    return {.endpoint = "tcp", .worker_sites = {1, 2, 3}, .server_sites = {0, 0}, .site_hosts = {0, 0, 1, 1}};
  }
  [[nodiscard]] SiteOrderChecks checks() const { return {order(), spec_, exchange()}; }

  tests::SmallRun run_;
  experiment::RunSpec spec_;
};

TEST_F(SiteOrders, OrderThatContradictsItsConfigurationIsRefused) {
  EXPECT_EQ(checks().check(), std::nullopt);
  const std::vector<std::pair<const char*, std::function<void(SiteOrder&, ExchangePlan&)>>> lies{
      {"no endpoint", [](auto&, auto& e) { e.endpoint.clear(); }},
      {"too few workers", [](auto&, auto& e) { e.worker_sites.pop_back(); }},
      {"too many workers", [](auto&, auto& e) { e.worker_sites.push_back(4); }},
      {"too few servers", [](auto&, auto& e) { e.server_sites.pop_back(); }},
      {"the coordinator's own site", [](auto& o, auto&) { o.site = 0; }},
      {"more sites than can be", [](auto&, auto& e) { e.worker_sites[2] = ~0U; }},
      {"another site's worker", [](auto& o, auto&) { o.workers = {2}; }},
      {"a worker that is none", [](auto& o, auto&) { o.workers = {77}; }},
      {"a worker twice",
       [](auto& o, auto&) {
         o.workers = {1, 1};
       }},
      {"nobody", [](auto& o, auto&) { o.workers.clear(); }},
      {"another site's server", [](auto& o, auto&) { o.servers = {0}; }},
      {"a server that is none", [](auto& o, auto&) { o.servers = {~0U}; }},
      {"too few hosts", [](auto&, auto& e) { e.site_hosts.resize(2); }},
      {"no vectors", [](auto& o, auto&) { o.most_floats = 0; }},
      {"vectors beyond all", [](auto& o, auto&) { o.most_floats = ~std::uint64_t{0}; }},
  };
  for (const auto& [what, lie] : lies) {
    auto changed = order();
    auto plan = exchange();
    lie(changed, plan);
    EXPECT_NE(SiteOrderChecks(changed, spec_, plan).check(), std::nullopt) << what;
  }
}

TEST_F(SiteOrders, AddressesThatDoNotFitTheOrderAreRefused) {
  const SiteAddresses addresses{{"tcp:0", "tcp:1", "", "tcp:3"}, -1, {}};
  EXPECT_EQ(checks().check(addresses), std::nullopt);
  EXPECT_EQ(checks().check(SiteAddresses{addresses.texts, 40, {5, 6}}), std::nullopt);
  EXPECT_NE(checks().check(SiteAddresses{{"tcp:0"}, -1, {}}), std::nullopt);
  EXPECT_NE(checks().check(SiteAddresses{std::vector<std::string>(100'000), -1, {}}), std::nullopt);
  EXPECT_NE(checks().check(SiteAddresses{{"tcp:0", std::string(100'000, 'x'), "", ""}, -1, {}}), std::nullopt);
  EXPECT_NE(checks().check(SiteAddresses{addresses.texts, -2, {}}), std::nullopt);
  EXPECT_NE(checks().check(SiteAddresses{addresses.texts, std::int64_t{1} << 60, {}}), std::nullopt);
  EXPECT_NE(checks().check(SiteAddresses{addresses.texts, -1, {1, 2, 3}}), std::nullopt);
}

TEST_F(SiteOrders, MembersAtOtherSitesThanOrderedAreRefused) {
  SystemConfig config;
  caf::actor_system system(config);
  const caf::scoped_actor self(system);
  SiteDirectory actors{.coordinator = caf::actor_cast<CoordinatorActor>(self),
                       .recorder = caf::actor_cast<RecorderActor>(self),
                       .worker_sites = {1, 2, 3},
                       .server_sites = {0, 0},
                       .members = {0, 1, 2},
                       .site_hosts = {0, 0, 1, 1},
                       .exchange = experiment::to_json(exchange())};
  EXPECT_EQ(checks().check(actors), std::nullopt);
  const std::vector<std::pair<const char*, std::function<void(SiteDirectory&)>>> lies{
      {"nobody to coordinate", [](auto& c) { c.coordinator = nullptr; }},
      {"nobody to record", [](auto& c) { c.recorder = nullptr; }},
      {"no workers", [](auto& c) { c.worker_sites.clear(); }},
      {"workers elsewhere", [](auto& c) { c.worker_sites[1] = 3; }},
      {"servers elsewhere", [](auto& c) { c.server_sites[1] = 2; }},
      {"other hosts", [](auto& c) { c.site_hosts.clear(); }},
      {"a member that is none", [](auto& c) { c.members.push_back(3); }},
      {"members out of order",
       [](auto& c) {
         c.members = {1, 0};
       }},
      {"a member twice",
       [](auto& c) {
         c.members = {1, 1};
       }},
      {"no way to exchange", [](auto& c) { c.exchange = "{"; }},
      {"another memory",
       [](auto& c) {
         auto plan = exchange();
         plan.on_devices = true;
         c.exchange = experiment::to_json(plan);
       }},
      {"another way to exchange", [](auto& c) {
         auto plan = exchange();
         plan.packed = true;
         c.exchange = experiment::to_json(plan);
       }}};
  for (const auto& [what, lie] : lies) {
    auto changed = actors;
    lie(changed);
    EXPECT_NE(checks().check(changed), std::nullopt) << what;
  }
}

TEST_F(SiteOrders, ImpossibleMeasureOrdersAreRefused) {
  const MeasureOrder measure{{1, 2, 3}, {0, 0, 1, 1}, {100, 1000}, {"asa", "ring"}, 5};
  EXPECT_EQ(checks().check(measure), std::nullopt);
  const std::vector<std::pair<const char*, std::function<void(MeasureOrder&)>>> lies{
      {"another group", [](auto& m) { m.worker_sites = {1}; }},
      {"no hosts for some", [](auto& m) { m.site_hosts = {0}; }},
      {"no lengths", [](auto& m) { m.floats.clear(); }},
      {"a group's name that is too long", [](auto& m) { m.group.assign(1000, 'x'); }},
      {"a length of nothing", [](auto& m) { m.floats = {0}; }},
      {"a length beyond all", [](auto& m) { m.floats = {1001}; }},
      {"lengths without end", [](auto& m) { m.floats.assign(10'000, 1); }},
      {"no algorithms", [](auto& m) { m.algorithms.clear(); }},
      {"an algorithm that there is not", [](auto& m) { m.algorithms = {"quick"}; }},
      {"any algorithm", [](auto& m) { m.algorithms = {"auto"}; }},
      {"no rounds", [](auto& m) { m.rounds = 0; }},
      {"rounds without end", [](auto& m) { m.rounds = ~0U; }},
  };
  for (const auto& [what, lie] : lies) {
    auto changed = measure;
    lie(changed);
    EXPECT_NE(checks().check(changed), std::nullopt) << what;
  }
  for (const char* asked : {"shm", "nccl"}) {
    const MeasureOrder question{{1, 2, 3}, {0, 0, 1, 1}, {}, {asked}, 1};
    EXPECT_EQ(checks().check(question), std::nullopt) << asked << ": whether it can, without lengths";
  }
}

}  // namespace
}  // namespace troupe::actors
