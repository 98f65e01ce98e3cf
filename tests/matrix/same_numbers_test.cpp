// One hash wherever a run's members are: every strategy with one worker, and every synchronous strategy with several. scripts/test runs a
// part of the table, `scripts/test --matrix` all of it.
#include <cstdlib>
#include <set>

#include <gtest/gtest.h>

#include "strategies/registry/registry.hpp"
#include "tests/matrix/configurations.hpp"

namespace troupe::matrix {
namespace {

bool all() {
  const char* wanted = std::getenv("TROUPE_MATRIX");
  return wanted && std::string_view(wanted) == "all";
}

/// The same nodes serve all runs, and must end with exit code 0.
class Environment final : public testing::Environment {
 public:
  void SetUp() override { worlds_ = std::make_unique<Worlds>(); }
  void TearDown() override {
    EXPECT_TRUE(!worlds_ || worlds_->close());
    worlds_.reset();
  }
  [[nodiscard]] Worlds& worlds() { return *worlds_; }

 private:
  std::unique_ptr<Worlds> worlds_;
};
Environment* const environment = [] {
  auto* made = new Environment;
  testing::AddGlobalTestEnvironment(made);  // gtest owns it
  return made;
}();

class SameNumbers : public testing::TestWithParam<Cell> {};

TEST_P(SameNumbers, AreReachedInEveryWorld) {
  auto [configuration, members] = GetParam();
  members.buckets = configuration->buckets;
  auto& worlds = environment->worlds();
  std::vector<World> where;
  for (const World world : kWorlds) {
    const auto& only = configuration->worlds;
    if ((only.empty() || std::ranges::find(only, world) != only.end()) && worlds.has(world)) where.push_back(world);
  }
  auto settings = configuration->settings;
  settings.push_back("strategy.name=" + configuration->strategy);
  const auto numbers = worlds.compute(where, members, settings);
  const auto& expected = numbers.front().run;
  ASSERT_FALSE(expected.starts_with("failed")) << name_of(where.front()) << ": " << expected;
  for (std::size_t k = 0; k < where.size(); ++k) {
    EXPECT_EQ(numbers[k].run, expected) << name_of(where[k]) << " against " << name_of(where.front());
    if (where[k] == World::virtual_time) continue;
    EXPECT_EQ(numbers[k].replayed, numbers[k].run) << "the replay of " << name_of(where[k]);
  }
}

INSTANTIATE_TEST_SUITE_P(, SameNumbers, testing::ValuesIn(cells(all())),
                         [](const auto& info) { return name_of(info.param); });

TEST(Matrix, ContainsEveryStrategy) {
  std::set<std::string> standard;
  for (const auto& configuration : configurations())
    if (configuration.standard) standard.insert(configuration.strategy);
  for (const auto& row : strategies::registry()) EXPECT_TRUE(standard.contains(row.name)) << row.name;
}

TEST(Matrix, EveryWorldIsCompared) {
  std::string missing;
  for (const auto& [world, why] : environment->worlds().missing())
    missing += std::string(missing.empty() ? "" : "; ") + name_of(world) + ": " + why;
  if (!missing.empty()) GTEST_SKIP() << "not compared: " << missing;
}

}  // namespace
}  // namespace troupe::matrix
