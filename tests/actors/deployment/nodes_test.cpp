#include "actors/deployment/nodes.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

TEST(Nodes, AreNamedAsTheUserWroteThem) {
  const auto names = parse_nodes("h1:4242,127.0.0.1:04242,[::1]:4242,127.0.0.1:4243");
  ASSERT_TRUE(names) << names.error().message;
  EXPECT_EQ(*names, (std::vector<std::string>{"h1:4242", "127.0.0.1:04242", "[::1]:4242", "127.0.0.1:4243"}));
}

TEST(Nodes, AnAddressThatIsListedTwiceIsRefusedInAnyForm) {
  for (const std::string list :
       {"h1:4242,h1:4242", "127.0.0.1:026002,127.0.0.1:26002", "Node1:4242,node1:4242", "[::1]:4242,[0:0::1]:4242"}) {
    const auto names = parse_nodes(list, "NODES");
    ASSERT_FALSE(names) << list;
    EXPECT_EQ(names.error().code, core::Errc::config);
    EXPECT_TRUE(names.error().message.starts_with("NODES: " + list.substr(list.find(',') + 1) + " is listed twice"))
        << names.error().message;
  }
  EXPECT_EQ(parse_nodes("h1:0042,h1:42").error().message, "--nodes: h1:42 is listed twice, also as h1:0042");
}

}  // namespace
}  // namespace troupe::actors
