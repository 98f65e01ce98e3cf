// Grids and sweeps over nodes: a run on each node at a time, and what follows when one is lost.
#include <filesystem>

#include "tests/nodes/nodes_fixture.hpp"

namespace troupe::nodes {
namespace {

using Json = nlohmann::json;

class Grids : public NodesFixture {
 protected:
  std::vector<std::string> grid(const std::string& text) {
    const auto file = folder_.write("g.toml", "base = \"" + config_ + "\"\n" + text);
    return program({"grid", file, "--plain", "--json", "--nodes", names(), "--set", "run.dir=" + folder_.file("runs"),
                    "--set", "cluster.synthetic_step_ms=20"});
  }
};

TEST_F(Grids, ARunWhoseNodeIsKilledGoesOnOnTheOther) {
  start_nodes(2);
  Process process(grid("[grid]\ntrain.lr = [0.01, 0.02, 0.04]\nrun.epochs = 20\n"));
  ASSERT_TRUE(process.says(": epoch ")) << process.err();
  node(1).process().kill();
  EXPECT_EQ(process.wait(), 0) << process.err();
  EXPECT_NE(process.err().find("goes on elsewhere"), std::string::npos) << process.err();
  const auto json = Json::parse(process.out(), nullptr, false);
  ASSERT_TRUE(json.is_object()) << process.out();
  EXPECT_EQ(json["done"], 3);
  for (const auto& run : json["results"]) EXPECT_EQ(run["summary"]["epochs"], 20) << run;
}

TEST_F(Grids, ASweepUsesAllNodesAndOutlivesOneOfThem) {
  start_nodes(2);
  Process process(grid("[sweep]\nruns = 6\neta = 2\n[grid]\ntrain.lr = { log = [0.01, 0.5] }\nrun.epochs = 4\n"));
  ASSERT_TRUE(process.says("going on with")) << process.err();
  node(0).process().kill();
  EXPECT_EQ(process.wait(), 0) << process.err();
  const auto json = Json::parse(process.out(), nullptr, false);
  ASSERT_TRUE(json.is_object()) << process.out();
  EXPECT_EQ(json["state"], "finished");
  EXPECT_EQ(json["trials"].size(), 6U);
  for (const auto& trial : json["trials"]) EXPECT_FALSE(trial["scores"].empty()) << trial;
}

}  // namespace
}  // namespace troupe::nodes
