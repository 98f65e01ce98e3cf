// The state of a guest's optimizer: what the engine is told, and gives back. The program is that of programs/scripted_guest.cpp.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <gtest/gtest.h>

#include "guest/backend.hpp"
#include "guest/frames.hpp"
#include "nn/checkpoint/own_state.hpp"
#include "tests/guest/scripted.hpp"

namespace troupe::guest {
namespace {

constexpr double kRate = 0.1;  // the program's
using Words = std::vector<std::string>;

nn::OwnOptimizer& optimizer_of(const std::unique_ptr<nn::Replica>& replica) {
  auto* const optimizer = nn::own_optimizer_of(*replica);
  if (optimizer == nullptr) throw std::logic_error("a guest has an optimizer of its own");
  return *optimizer;
}

class GuestState : public testing::Test {
 protected:
  GuestState() : descriptors_(open_descriptors()) {}
  ~GuestState() override {
    EXPECT_FALSE(has_children());
    EXPECT_EQ(open_descriptors(), descriptors_);
  }
  [[nodiscard]] GuestProgram program(Words words) const {
    words.push_back("log=" + folder_.file("log"));
    return scripted(std::move(words));
  }
  /// What it has heard of LOAD.
  [[nodiscard]] Words loads() const {
    auto lines = logged(folder_, "0");
    std::erase_if(lines, [](const std::string& line) { return !line.starts_with("LOAD "); });
    return lines;
  }
  tests::Folder folder_;
  std::size_t descriptors_;
};

// v1 = g1 and v2 = m v1 + g2 with g = p − 0.7 of b: its targets are 0.9 and 0.5 for the samples 0 and 1, whose mean is 0.7.
TEST_F(GuestState, IsWhatTheOptimizerHasAfterItsSteps) {
  const ScriptedRun run(program({"momentum=0.5"}));
  ASSERT_TRUE(run.graph);
  auto replica = run.worker(false);
  ASSERT_TRUE(replica) << replica.error().message;
  for (std::uint64_t lease = 0; lease < 2; ++lease) ASSERT_TRUE((*replica)->step(batch_of(kSamples, lease), {}));
  const auto state = optimizer_of(*replica).own_state();
  ASSERT_TRUE(state) << state.error().message;
  ASSERT_EQ(state->size(), 4 * sizeof(float));  // three of w, and b
  float b = 0;
  std::memcpy(&b, state->data() + 3 * sizeof(float), sizeof(b));
  const double target = ((3 * 3) % 11 + (7 + 3 * 3) % 11) / 20.0;
  const double first = 1.5 - target, second = 0.5 * first + (1.5 - kRate * first - target);
  EXPECT_NEAR(b, second, 1e-6);
}

TEST_F(GuestState, AnotherGuestGoesOnWithItBitForBit) {
  const ScriptedRun run(program({"momentum=0.9"}));
  ASSERT_TRUE(run.graph);
  auto first = run.worker(true), second = run.worker(true, 1);
  ASSERT_TRUE(first && second);
  const auto train = [](nn::Replica& replica, std::uint64_t lease) {
    ASSERT_TRUE(replica.step(batch_of(kSamples, lease), {}));
    replica.apply({.lr = 1}, {});
  };
  for (std::uint64_t lease = 0; lease < 3; ++lease) train(**first, lease);
  const auto state = optimizer_of(*first).own_state();
  ASSERT_TRUE(state);
  std::ranges::copy((*first)->parameters(), (*second)->parameters().begin());
  (*second)->parameters_written();
  ASSERT_TRUE(optimizer_of(*second).set_own_state(*state));
  const std::vector<float> before((*first)->parameters().begin(), (*first)->parameters().end());
  for (std::uint64_t lease = 3; lease < 6; ++lease) {
    train(**first, lease);
    train(**second, lease);
  }
  EXPECT_TRUE(std::ranges::equal((*first)->parameters(), (*second)->parameters()));
  EXPECT_FALSE(std::ranges::equal((*first)->parameters(), before));
}

// Two whole frames and a third one, in both directions.
TEST_F(GuestState, IsSentInPiecesThatFitAFrame) {
  constexpr std::size_t kPiece = kMostPayload - 16, kBytes = 2 * kPiece + 5;
  const ScriptedRun run(program({"state_bytes=" + std::to_string(kBytes)}));
  ASSERT_TRUE(run.graph);
  auto replica = run.worker(false);
  ASSERT_TRUE(replica);
  const auto state = optimizer_of(*replica).own_state();
  ASSERT_TRUE(state) << state.error().message;
  ASSERT_EQ(state->size(), kBytes);
  EXPECT_EQ(std::to_integer<unsigned>((*state)[kBytes - 1]), (7 * (kBytes - 1) + 3) % 251);
  const auto loaded = optimizer_of(*replica).set_own_state(*state);
  ASSERT_TRUE(loaded) << loaded.error().message;  // the program compares the bytes
  const auto all = " of " + std::to_string(kBytes), piece = std::to_string(kPiece);
  EXPECT_EQ(loads(), (Words{"LOAD " + piece + " from 0" + all, "LOAD " + piece + " from " + piece + all,
                            "LOAD 5 from " + std::to_string(2 * kPiece) + all}));
}

TEST_F(GuestState, MayBeEmpty) {
  const ScriptedRun run(program({}));
  ASSERT_TRUE(run.graph);
  auto replica = run.worker(false);
  ASSERT_TRUE(replica);
  const auto state = optimizer_of(*replica).own_state();
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_TRUE(state->empty());
  ASSERT_TRUE(optimizer_of(*replica).set_own_state(*state));
  EXPECT_EQ(loads(), Words{"LOAD 0 from 0 of 0"});
}

// A guest that has values elsewhere takes a state for the values that it has: those that the engine wrote come first.
TEST_F(GuestState, IsLoadedAfterTheValuesThatBelongToIt) {
  const ScriptedRun run(program({"momentum=0.9", "mirrors=1"}));
  ASSERT_TRUE(run.graph);
  auto replica = run.worker(false);
  ASSERT_TRUE(replica);
  (*replica)->import_canonical(std::vector<float>(4, 2.0F));
  ASSERT_TRUE(optimizer_of(*replica).set_own_state(std::vector<std::byte>(16)));
  ASSERT_TRUE((*replica)->step(batch_of(kSamples, 0), {}));
  auto heard = logged(folder_, "0");
  std::erase_if(heard, [](const std::string& line) { return line != "CHANGED" && !line.starts_with("LOAD "); });
  EXPECT_EQ(heard, (Words{"CHANGED", "LOAD 16 from 0 of 16"}));
}

TEST_F(GuestState, OfAnotherOptimizerIsOneError) {
  const ScriptedRun run(program({"momentum=0.9"}));
  ASSERT_TRUE(run.graph);
  auto replica = run.worker(false);
  ASSERT_TRUE(replica);
  const auto loaded = optimizer_of(*replica).set_own_state(std::vector<std::byte>(7));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(core::name(loaded.error().code), core::name(core::Errc::program));
  EXPECT_EQ(loaded.error().message,
            "the state of its optimizer that was saved, 7 bytes, is not taken by the program: the program has failed: "
            "a state of 7 bytes, not of 16; it ended with exit code 1");
}

struct Case {
  std::string name;
  Words words;
  std::string says;
};
std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.name; }

class GuestStateFaults : public GuestState, public testing::WithParamInterface<Case> {};

TEST_P(GuestStateFaults, AreOneError) {
  auto words = GetParam().words;
  words.insert(words.end(), {"when=STATE", "state_bytes=10", "state_piece=6"});
  const ScriptedRun run(
      scripted(std::move(words), {.silence = std::chrono::duration<double>(GetParam().name == "Hangs" ? 0.1 : 120)}));
  ASSERT_TRUE(run.graph);
  auto replica = run.worker(false);
  ASSERT_TRUE(replica);
  const auto state = optimizer_of(*replica).own_state();
  ASSERT_FALSE(state);
  const bool may_be_the_machine = GetParam().name == "Hangs" || GetParam().name == "IsKilled";
  EXPECT_EQ(core::name(state.error().code), core::name(may_be_the_machine ? core::Errc::io : core::Errc::program));
  EXPECT_NE(state.error().message.find(GetParam().says), std::string::npos) << state.error().message;
  EXPECT_EQ(state.error().message.find('\n'), std::string::npos) << state.error().message;
}

/// A frame STATE: bytes in all, offset, and as many bytes.
std::string frame(std::uint64_t total, std::uint64_t offset, std::uint32_t bytes) {
  std::string text = "fault=raw:";
  const auto put = [&](std::uint64_t value, int count) {
    constexpr auto kDigits = "0123456789abcdef";
    for (int k = 0; k < count; ++k, value >>= 8U) text += {kDigits[value >> 4U & 15U], kDigits[value & 15U]};
  };
  put(16 + bytes, 4);
  put(8, 4);
  put(total, 8);
  put(offset, 8);
  return text + std::string(2 * std::size_t{bytes}, '0');
}

// The model has 32 floats.
INSTANTIATE_TEST_SUITE_P(
    , GuestStateFaults,
    testing::Values(Case{"NoPiece", {"fault=text:abc"}, "the guest's STATE has 3 bytes"},
                    Case{"TooLarge",
                         {frame((256U << 20) + 32 * 4 * 32 + 1, 0, 1)},
                         "has 268439553 bytes, and for its parameters 268439552 are allowed"},
                    Case{"FarTooLarge", {frame(~std::uint64_t{0}, 0, 1)}, "has 18446744073709551615 bytes"},
                    Case{"AHole", {frame(10, 7, 1), "nth=2"}, "has 1 bytes from 7 of 10, after 6 of 10"},
                    Case{"Twice", {"fault=twice"}, "has 6 bytes from 0 of 10, after 6 of 10"},
                    Case{"AnotherTotal", {frame(11, 6, 5), "nth=2"}, "has 5 bytes from 6 of 11, after 6 of 10"},
                    Case{"BeyondItsEnd", {frame(10, 6, 5), "nth=2"}, "has 5 bytes from 6 of 10, after 6 of 10"},
                    Case{"FarBeyondItsEnd", {frame(10, ~std::uint64_t{0}, 5), "nth=2"}, "after 6 of 10"},
                    Case{"NothingOfSomething", {frame(10, 6, 0), "nth=2"}, "has 0 bytes from 6 of 10, after 6 of 10"},
                    Case{"SomethingOfNothing", {frame(0, 0, 1)}, "has 1 bytes from 0 of 0, after 0 of 0"},
                    Case{"AnotherFrame", {"fault=as:SYNCED"}, "the guest said SYNCED where STATE was due"},
                    Case{"Fails", {"fault=failed:a state of no kind"}, "the program has failed: a state of no kind"},
                    Case{"IsKilled", {"fault=kill", "nth=2"}, "it was killed by signal 9 (Killed)"},
                    Case{"Hangs", {"fault=hang"}, "is silent for 0.1 s (model.silence_s)"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace troupe::guest
