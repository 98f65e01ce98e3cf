#include "actors/run/launch.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategies/registry/registry.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::actors {
namespace {

TEST(Launch, StrategiesWithSubgroupsRefuseTheLibrarysSums) {
  const std::string only = ": exchange.algorithm = \"ar\" sums over all ranks, one worker of each, and the groups of ";
  std::size_t refused = 0;
  for (const auto& row : strategies::registry()) {
    std::vector<std::string> options{"strategy.name=" + row.name};
    if (row.local_optimizer)
      options.push_back("train.optimizer=" + std::string(core::optimizer_info(*row.local_optimizer).name));
    auto settings = tests::SmallRun(options).settings().value();
    settings.exchange.algorithm = "ar";  // only a job of MPI may configure it
    const auto needs = experiment::make_strategy(settings).value()->needs();
    EXPECT_FALSE(check_library_sum(settings, needs, 2)) << "MPI sums one vector of each rank";
    const auto sums = check_library_sum(settings, needs, 1);
    EXPECT_EQ(sums.has_value(), !needs.subgroups) << row.name;
    if (sums) continue;
    ++refused;
    EXPECT_EQ(sums.error().code, core::Errc::config);
    EXPECT_NE(sums.error().message.find(only + row.name + " are smaller: use \"auto\""), std::string::npos)
        << sums.error().message;
  }
  EXPECT_EQ(refused, 2U) << "mixed and pairs";
}

TEST(Launch, AnEndpointOfAJobIsRefusedOverNodes) {
  for (const std::string algorithm : {"auto", "ar"}) {
    auto settings = tests::SmallRun({"strategy.name=bsp", "cluster.workers=3"}).settings().value();
    settings.exchange.endpoint = "mpi";
    settings.exchange.algorithm = algorithm;
    const Node node{.name = "127.0.0.1:4242", .at = {"127.0.0.1", 4242}, .actor = {}, .facts = {}};
    const auto launch = launch_on({node}, settings, 1, {}, "a version");
    ASSERT_FALSE(launch.has_value());
    EXPECT_EQ(launch.error().code, core::Errc::config);
    EXPECT_NE(launch.error().message.find("exchange.endpoint = \"mpi\""), std::string::npos) << launch.error().message;
    EXPECT_NE(launch.error().message.find("start the run with mpirun"), std::string::npos) << launch.error().message;
  }
}

/// Or each would take the first GPU and the first cores of that host.
TEST(Launch, NodesThatAreStillToComeAreWhereTheirAddressIs) {
  auto settings = tests::SmallRun({"strategy.name=easgd", "cluster.workers=3"}).settings().value();
  std::vector<Node> nodes;
  for (const std::uint16_t port : {4242, 4243, 4244})
    nodes.push_back({.name = fmt::format("127.0.0.1:{}", port), .at = {"127.0.0.1", port}, .actor = {}, .facts = {}});
  const auto launch = launch_on(nodes, settings, 1, {}, "a version");
  ASSERT_TRUE(launch.has_value()) << launch.error().message;
  ASSERT_EQ(launch->placement.hosts.size(), launch->placement.processes.size());
  EXPECT_THAT(launch->placement.hosts, ::testing::Each(0U)) << "with this process, all on one host";
}

}  // namespace
}  // namespace troupe::actors
