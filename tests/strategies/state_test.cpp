/// A new rule that restores the state of an old one continues exactly as the old one would: for every strategy,
/// at every moment at which the state may be saved.
#include <gtest/gtest.h>

#include "tests/strategies/recording.hpp"
#include "tests/strategies/variants.hpp"

namespace troupe::strategies {
namespace {

constexpr std::uint64_t kSchedules = 8;  // for each variant

/// Expects that fresh rules that restore `told`'s state at any moment repeat its actions. Returns the number of moments.
template <class Told, class Make>
std::size_t expect_resumable(const std::vector<Told>& told, const Make& fresh) {
  std::size_t moments = 0;
  const auto first = fresh();
  for (std::size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(answer(*first, told[i]), told[i].actions) << "a rule is a pure function of its events";
    if (!told[i].at_rest) continue;
    ++moments;
    const auto second = fresh();
    const auto restored = second->restore(first->state());
    EXPECT_TRUE(restored) << restored.error().message;
    EXPECT_EQ(second->state(), first->state());
    for (std::size_t k = i + 1; k < told.size(); ++k)
      EXPECT_EQ(answer(*second, told[k]), told[k].actions) << "event " << k << " after a restart at event " << i;
    if (testing::Test::HasFailure()) break;
  }
  return moments;
}

TEST(State, RuleRestoredAtAnyMomentContinuesAsBefore) {
  for (const auto& variant : variants()) {
    std::size_t worker_moments = 0;
    std::size_t server_moments = 0;
    for (std::uint64_t seed = 1; seed <= kSchedules; ++seed) {
      SCOPED_TRACE(variant.text() + ", seed " + std::to_string(seed));
      const auto shape = random_shape(variant, seed);
      const auto strategy = made_for(variant, shape);
      const Recorded recorded(*strategy);
      explore::VirtualRun(recorded, shape).execute();
      for (const auto& log : recorded.workers())
        worker_moments += expect_resumable(*log, [&] { return strategy->worker(); });
      for (const auto& log : recorded.servers())
        server_moments += expect_resumable(*log, [&] { return strategy->server(); });
      if (HasFailure()) return;  // the first failing schedule is enough
    }
    EXPECT_GT(worker_moments, kSchedules) << variant.text() << ": this tests nothing";
    EXPECT_EQ(server_moments > 0, made_for(variant, fitted(variant, {}))->needs().servers) << variant.text();
  }
}

TEST(State, StateOfAnotherRuleIsCorrupt) {
  for (const auto& variant : variants()) {
    const auto strategy = made_for(variant, fitted(variant, {}));
    for (const std::string text : {"courage=1;", "stopped", ";"}) {
      const auto worker = strategy->worker()->restore(text);
      ASSERT_FALSE(worker) << variant.text();
      EXPECT_EQ(worker.error().code, core::Errc::corrupt);
      EXPECT_NE(worker.error().message.find(text), std::string::npos) << worker.error().message;
      if (!strategy->needs().servers) continue;
      const auto server = strategy->server()->restore(text);
      ASSERT_FALSE(server) << variant.text();
      EXPECT_EQ(server.error().code, core::Errc::corrupt);
    }
  }
}

// ---- the text

using Workers = std::vector<WorkerId>;
using Steps = std::map<std::uint32_t, Step>;

TEST(State, ValuesComeBackBitForBit) {
  for (const double number : {0.0, -0.0, 1.0 / 3, 5e-324, -1.7976931348623157e308, 0x1p-52}) {
    bool flag = false;
    std::uint64_t count = 0;
    double back = 7;
    std::string inner;
    Workers workers{9};
    Steps steps{{9, 9}};
    const std::string nested = write_state({{"a", true}, {"b", std::string("=;:")}});
    const auto text = write_state({{"flag", true},
                                   {"count", ~std::uint64_t{0}},
                                   {"number", number},
                                   {"inner", nested},
                                   {"workers", Workers{0, 3, 4294967295U}},
                                   {"steps", Steps{{0, 5}, {7, ~Step{0}}}}});
    ASSERT_TRUE(read_state(text, {{"flag", &flag},
                                  {"count", &count},
                                  {"number", &back},
                                  {"inner", &inner},
                                  {"workers", &workers},
                                  {"steps", &steps}}));
    EXPECT_TRUE(flag);
    EXPECT_EQ(count, ~std::uint64_t{0});
    EXPECT_EQ(std::bit_cast<std::uint64_t>(back), std::bit_cast<std::uint64_t>(number));
    EXPECT_EQ(inner, nested);
    EXPECT_EQ(workers, (Workers{0, 3, 4294967295U}));
    EXPECT_EQ(steps, (Steps{{0, 5}, {7, ~Step{0}}}));
  }
  Workers none{1};
  ASSERT_TRUE(read_state(write_state({{"none", Workers{}}}), {{"none", &none}}));
  EXPECT_EQ(none, Workers{});
  EXPECT_EQ(write_state({}), "");
}

TEST(State, DamageIsFoundAndChangesNothing) {
  const auto text = write_state({{"count", std::uint64_t{12}}, {"number", 0.5}, {"steps", Steps{{1, 2}}}});
  std::uint64_t count = 3;
  double number = 4;
  Steps steps{{5, 6}};
  const auto read = [&](const std::string& from) {
    return read_state(from, {{"count", &count}, {"number", &number}, {"steps", &steps}});
  };
  for (std::size_t cut = 0; cut < text.size(); ++cut) EXPECT_FALSE(read(text.substr(0, cut))) << cut;
  for (const std::string other : {"x", "x=1;", "count=12;"}) EXPECT_FALSE(read(text + other)) << other;
  EXPECT_FALSE(read("count=-1;number=0x1p-1;steps=1:2,;"));
  EXPECT_FALSE(read("number=0x1p-1;count=12;steps=1:2,;")) << "another order";
  EXPECT_EQ(count, 3U);
  EXPECT_EQ(number, 4);
  EXPECT_EQ(steps, (Steps{{5, 6}}));
  EXPECT_EQ(
      read("count=12;numbers=1;").error().message,
      "a rule's state \"count=12;numbers=1;\": \"number=…;\" is missing at character 10: written by another version or "
      "for another strategy, or damaged");
}

}  // namespace
}  // namespace troupe::strategies
