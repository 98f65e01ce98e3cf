#include "service/nodes/node_registry.hpp"

#include <atomic>

#include <gtest/gtest.h>

#include "tests/folder.hpp"
#include "tests/wait.hpp"

namespace troupe::service {
namespace {

using tests::eventually;

/// Nodes that answer as a test says, in the time that it says.
class NodeRegistryTest : public ::testing::Test {
 protected:
  class SharedClock final : public core::Clock {
   public:
    [[nodiscard]] core::Duration now() const noexcept override { return core::Duration(now_.load()); }
    void advance(core::Duration by) { now_ += by.count(); }

   private:
    std::atomic<core::Duration::rep> now_ = 0;
  };
  std::unique_ptr<NodeRegistry> open() {
    auto registry = NodeRegistry::open({.file = folder_.file("nodes.json"),
                                        .ask =
                                            [this](const std::string& address, const std::stop_token&) {
                                              ++asked_;
                                              return answer(address);
                                            },
                                        .clock = &clock_,
                                        .period = std::chrono::milliseconds(1)});
    EXPECT_TRUE(registry.has_value());
    return std::move(*registry);
  }
  core::Result<NodeReport> answer(const std::string& address) {
    switch (mode_.load()) {
      case 1: return core::fail(core::Errc::timeout, address + ": no answer");
      case 2: return core::fail(core::Errc::peer_lost, address + ": nothing listens there");
      default: return NodeReport{.cores = 4, .load = 0.5, .memory = 100, .memory_free = 50, .gpus = {}, .runs = {"a"}};
    }
  }
  /// Waits until two more questions have ended, so that the last one has seen the present mode.
  bool asked_again() {
    const int before = asked_;
    return eventually([&] { return asked_ >= before + 3; });
  }

  tests::Folder folder_;
  SharedClock clock_;
  std::atomic<int> mode_ = 0, asked_ = 0;
};

TEST_F(NodeRegistryTest, ANodeThatAnswersIsAlive) {
  const auto registry = open();
  ASSERT_TRUE(registry->add("h1:4242").has_value());
  ASSERT_TRUE(eventually([&] { return registry->rows().front().alive; }));
  const auto row = registry->rows().front();
  EXPECT_EQ(row.report->cores, 4U);
  EXPECT_EQ(row.report->runs, std::vector<std::string>{"a"});
}

TEST_F(NodeRegistryTest, ASilentNodeIsDeadAfterTwentyOneSecondsAndNotBefore) {
  const auto registry = open();
  ASSERT_TRUE(registry->add("h1:4242").has_value());
  ASSERT_TRUE(eventually([&] { return registry->rows().front().alive; }));
  mode_ = 1;
  ASSERT_TRUE(asked_again());
  clock_.advance(std::chrono::milliseconds(20'999));
  EXPECT_TRUE(registry->rows().front().alive);
  clock_.advance(std::chrono::milliseconds(1));
  const auto row = registry->rows().front();
  EXPECT_FALSE(row.alive);
  EXPECT_DOUBLE_EQ(*row.heard_s, 21.0);
  EXPECT_TRUE(row.report->runs.empty()) << "it runs nothing that is known";
  mode_ = 0;
  EXPECT_TRUE(eventually([&] { return registry->rows().front().alive; })) << "it is back";
}

TEST_F(NodeRegistryTest, ANodeWhereNothingListensIsDeadAtOnce) {
  const auto registry = open();
  ASSERT_TRUE(registry->add("h1:4242").has_value());
  ASSERT_TRUE(eventually([&] { return registry->rows().front().alive; }));
  mode_ = 2;
  EXPECT_TRUE(eventually([&] { return !registry->rows().front().alive; }));
}

TEST_F(NodeRegistryTest, NodesAreKnownAfterARestart) {
  {
    const auto registry = open();
    for (const auto* address : {"h2:1", "h1:1", "h3:1"}) ASSERT_TRUE(registry->add(address).has_value());
    ASSERT_TRUE(registry->remove("h3:1").value());
    EXPECT_FALSE(registry->remove("h3:1").value()) << "it is not known any more";
  }
  const auto registry = open();
  ASSERT_EQ(registry->rows().size(), 2U);
  EXPECT_EQ(registry->rows()[0].address, "h1:1");
  EXPECT_EQ(registry->rows()[1].address, "h2:1");
}

TEST_F(NodeRegistryTest, AddressesThatCannotBeAreRefused) {
  const auto registry = open();
  ASSERT_TRUE(registry->add("h1:1").has_value());
  for (const auto* bad : {"", "h1", "h1:0x", "h1:1"}) EXPECT_FALSE(registry->add(bad).has_value()) << bad;
  EXPECT_EQ(registry->rows().size(), 1U);
}

TEST_F(NodeRegistryTest, ANodeThatTheFileNamesSeveralTimesIsOne) {
  std::string again;
  for (int k = 0; k < 100; ++k) again += R"("h1:1", )";  // threads that replace each other meet by chance
  folder_.write("nodes.json", R"({"nodes": [)" + again + R"("h2:1"]})");
  const auto registry = open();
  EXPECT_EQ(registry->rows().size(), 2U);
  EXPECT_TRUE(eventually([&] { return registry->rows().front().alive; }));
}

TEST_F(NodeRegistryTest, AFileThatIsNoListIsAnError) {
  folder_.write("nodes.json", "[1]");
  const auto registry = NodeRegistry::open({.file = folder_.file("nodes.json"), .ask = nullptr, .clock = &clock_});
  ASSERT_FALSE(registry.has_value());
  EXPECT_EQ(registry.error().code, core::Errc::corrupt);
}

}  // namespace
}  // namespace troupe::service
