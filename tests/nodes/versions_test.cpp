// A node of another version. There is no such program here, so an actor claims to be one.
#include <gtest/gtest.h>

#include "actors/deployment/nodes.hpp"

namespace troupe::actors {
namespace {

NodeActor::behavior_type node_of(NodeActor::pointer, const std::string& version) {
  return {
      [version](const NodeQuery&) { return own_facts(version, "127.0.0.1"); },
      [](const GpuQuery&) { return GpuReport{}; },
      [](const SiteOrder&) -> caf::result<SiteOpened, OpenedSite> { return caf::sec::unexpected_message; },
  };
}

TEST(Versions, NodeOfAnotherVersionIsRefused) {
  const NetworkOptions options;
  NetworkConfig there_config(options);
  caf::actor_system there(there_config);
  auto theirs = Network::create(there, options).value();
  std::vector<std::string> names;
  std::vector<NodeActor> nodes;
  const auto ours_says = spoken_version("1.2.3");
  for (const auto& version : {ours_says, spoken_version("1.2.4"), std::string("1.2.3")}) {
    const auto& node = nodes.emplace_back(there.spawn(node_of, version));
    names.push_back("127.0.0.1:" + std::to_string(theirs->publish(node, {"127.0.0.1", 0}).value()));
  }
  {
    NetworkConfig here_config(options);
    caf::actor_system here(here_config);
    auto ours = Network::create(here, options).value();
    const auto same = connect_nodes(here, *ours, {names[0]}, 1, ours_says);
    ASSERT_TRUE(same) << same.error().message;
    EXPECT_EQ(same->front().facts.version, ours_says);
    // Also a node of the same version that does not send the format of its messages, as version 0.1 did not.
    for (const std::size_t which : {1U, 2U}) {
      const auto other = connect_nodes(here, *ours, {names[0], names[which]}, 2, ours_says);
      ASSERT_FALSE(other);
      EXPECT_EQ(other.error().code, core::Errc::config);
      for (const auto& sign : {names[which], ours_says, std::string(which == 1 ? "1.2.4" : "runs troupe 1.2.3,")})
        EXPECT_NE(other.error().message.find(sign), std::string::npos) << other.error().message;
    }
  }
  for (const auto& node : nodes) caf::anon_send_exit(node, caf::exit_reason::user_shutdown);
  theirs.reset();
}

}  // namespace
}  // namespace troupe::actors
