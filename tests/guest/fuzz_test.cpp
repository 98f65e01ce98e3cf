// Random and mutated frames of a guest: the engine's side never crashes, hangs or leaks. TROUPE_FUZZ=N tries N seeds, TROUPE_FUZZ_SEED=S
// begins with another one.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "guest/backend.hpp"
#include "guest/frames.hpp"
#include "nn/checkpoint/own_state.hpp"
#include "tests/guest/scripted.hpp"

namespace troupe::guest {
namespace {

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::stoull(text);
}

class GuestFuzz : public testing::Test {
 protected:
  GuestFuzz() : descriptors_(open_descriptors()) {}
  ~GuestFuzz() override {
    EXPECT_FALSE(has_children());
    EXPECT_EQ(open_descriptors(), descriptors_);
  }
  std::uint64_t first_ = number_of("TROUPE_FUZZ_SEED", 1);
  std::uint64_t tries_ = number_of("TROUPE_FUZZ", 60);
  std::size_t descriptors_;
};

/// What a strategy does with a replica, until something fails.
void train(nn::Replica& replica, bool gradients) {
  constexpr std::array<std::int32_t, 3> kThree{0, 1, 2};
  for (std::uint64_t lease = 0; lease < 4; ++lease) {
    if (!replica.step(batch_of(kThree, lease), [](int) {})) return;
    replica.apply({.lr = 1}, {});
    auto* const optimizer = nn::own_optimizer_of(replica);
    const auto state = optimizer->own_state();
    if (!state || !optimizer->set_own_state(*state)) return;
    for (float& value : replica.parameters()) value *= 0.5F;
    for (float& value : replica.statistics()) value *= 0.5F;
    replica.parameters_written();
    if (gradients)
      for (float& value : replica.gradients()) value = 0;
  }
}

TEST_F(GuestFuzz, AGuestOfRandomFramesIsAnErrorOrTrains) {
  for (std::uint64_t seed = first_; seed < first_ + tries_; ++seed) {
    SCOPED_TRACE("TROUPE_FUZZ=1 TROUPE_FUZZ_SEED=" + std::to_string(seed));
    const bool gradients = seed % 2 == 0;
    const auto program =
        scripted({"fault=fuzz:" + std::to_string(seed), "mirrors=" + std::to_string(seed / 2 % 2),
                  R"(statistics=[["mean",[2]]])", "momentum=0.5", "state_bytes=100", "state_piece=30"},
                 {.silence = std::chrono::duration<double>(0.05), .start = std::chrono::duration<double>(0.3)});
    const ScriptedRun run(program);
    const auto good = scripted({R"(statistics=[["mean",[2]]])"});
    const auto graph = nn::Graph::of_program("program", {{"w", {3}}, {"b", {}}}, {{"mean", {2}}});
    ASSERT_TRUE(graph);
    try {
      if (auto worker = run.backend->compile(*graph, {.batch = 4, .gradients = gradients})) train(**worker, gradients);
    } catch (const core::KernelsFailed& failed) {
      EXPECT_EQ(failed.error().message.find('\n'), std::string::npos);
    }
    if (auto evaluator = run.backend->compile(*graph, {.batch = 4, .training = false}))
      for (int k = 0; k < 2; ++k) (void)(*evaluator)->evaluate({});
  }
}

/// A text like a HELLO or a PLAN, with parts exchanged, repeated, cut and flipped.
std::string mutated(std::string text, std::mt19937_64& random) {
  const auto draw = [&](std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random); };
  static const std::vector<std::string> kParts{"[",
                                               "]",
                                               "{",
                                               "}",
                                               ",",
                                               ":",
                                               "\"",
                                               "-1",
                                               "1e999",
                                               "null",
                                               "true",
                                               "0",
                                               "\\u0000",
                                               "\xff",
                                               "9223372036854775807",
                                               "18446744073709551616",
                                               "[[\"w\",[1]]]",
                                               "\"tensors\"",
                                               "1.5"};
  for (std::size_t count = 1 + draw(6); count > 0 && !text.empty(); --count) {
    const auto at = draw(text.size());
    switch (draw(4)) {
      case 0: text[at] = static_cast<char>(draw(256)); break;
      case 1: text.insert(at, kParts[draw(kParts.size())]); break;
      case 2: text.erase(at, 1 + draw(8)); break;
      default: text.replace(at, 1 + draw(12), kParts[draw(kParts.size())]); break;
    }
  }
  return text;
}

TEST_F(GuestFuzz, TextsAreReadOrRefused) {
  const std::string hello =
      R"({"protocol":1,"token":"t","tensors":[["w",[3,4]],["b",[]],["none",[0]]],"statistics":[["m",[2]]],"optimizer":"sgd","mirrors":false})";
  const std::string plan = R"({"samples":100,"batch":10,"epochs":2})";
  std::size_t read = 0;
  for (std::uint64_t seed = first_; seed < first_ + 200 * tries_; ++seed) {
    std::mt19937_64 random(seed);
    if (const auto said = parse_hello(mutated(hello, random))) {
      ++read;
      ASSERT_EQ(said->places.size() >= said->tensors.size(), true) << seed;
      (void)nn::Graph::of_program("program", said->tensors, said->statistics);
    }
    if (const auto said = parse_plan(mutated(plan, random))) {
      ++read;
      ASSERT_LE(said->batch, said->samples) << seed;
      ASSERT_GE(said->epochs, 1) << seed;
    }
  }
  EXPECT_TRUE(read > 0 || tries_ < 10);
}

TEST_F(GuestFuzz, BytesAreFramesOrRefused) {
  for (std::uint64_t seed = first_; seed < first_ + 20 * tries_; ++seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&](std::size_t below) {
      return std::uniform_int_distribution<std::size_t>(0, below - 1)(random);
    };
    std::array<int, 2> pair{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    core::FileDescriptor there(pair[1]);
    Frames frames{core::FileDescriptor(pair[0])};
    std::string bytes;
    for (std::size_t count = draw(5); count > 0; --count) {
      const std::uint32_t length =
          draw(8) == 0 ? static_cast<std::uint32_t>(random()) : static_cast<std::uint32_t>(draw(64));
      const auto type = static_cast<std::uint16_t>(draw(8) == 0 ? random() : 1 + draw(12));
      const auto zero = static_cast<std::uint16_t>(draw(16) == 0 ? random() : 0);
      std::string head(8, '\0');
      std::memcpy(head.data(), &length, 4);
      std::memcpy(head.data() + 4, &type, 2);
      std::memcpy(head.data() + 6, &zero, 2);
      bytes += head + std::string(draw(8) == 0 ? draw(100) : std::min<std::uint32_t>(length, 100), 'x');
    }
    ASSERT_EQ(::write(there.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    there.reset();
    std::size_t taken = 0;
    for (;;) {
      const auto frame = frames.receive(std::chrono::steady_clock::now() + std::chrono::seconds(60));
      if (!frame) {
        ASSERT_TRUE(frame.error().code == core::Errc::io || frame.error().code == core::Errc::data) << seed;
        break;
      }
      taken += 8 + frame->payload.size();
      ASSERT_LE(taken, bytes.size()) << seed;
    }
  }
}

}  // namespace
}  // namespace troupe::guest
