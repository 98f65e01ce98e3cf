#include "strategies/host/kernel_call.hpp"

#include <map>

#include <gtest/gtest.h>

#include "sim/explore/world/memory.hpp"

namespace troupe::strategies {
namespace {

/// Runs `call` on one float per slot and returns the values afterwards.
std::map<Slot, float> after(const KernelCall& call, std::map<Slot, float> values) {
  std::map<Slot, core::Buffer> memory;
  for (const auto& [slot, value] : values) {
    auto buffer = explore::floats(1);
    buffer.view()[0] = value;
    memory.emplace(slot, std::move(buffer));
  }
  run(core::reference_kernels(), call, [&](Slot slot) {
    const auto found = memory.find(slot);
    return found == memory.end() ? core::Span{} : found->second.view();
  });
  for (auto& [slot, value] : values) value = memory.at(slot).view()[0];
  return values;
}

TEST(KernelCall, EachNameRunsItsKernelOnTheRightSlots) {
  using Values = std::map<Slot, float>;
  EXPECT_EQ(after(fill(kAcc, 3), {{kAcc, 1}}), (Values{{kAcc, 3}}));
  EXPECT_EQ(after(copy(kAcc, kParams), {{kAcc, 1}, {kParams, 2}}), (Values{{kAcc, 2}, {kParams, 2}}));
  EXPECT_EQ(after(scale(kAcc, 3), {{kAcc, 2}}), (Values{{kAcc, 6}}));
  EXPECT_EQ(after(axpy(kParams, 2, kAcc), {{kParams, 1}, {kAcc, 3}}), (Values{{kParams, 7}, {kAcc, 3}}));
  EXPECT_EQ(after(scale_add(kParams, 2, 3, kAcc), {{kParams, 5}, {kAcc, 7}}), (Values{{kParams, 31}, {kAcc, 7}}));
  EXPECT_EQ(after(difference(kAcc, kParams, kAnchor), {{kAcc, 0}, {kParams, 5}, {kAnchor, 3}}),
            (Values{{kAcc, 2}, {kParams, 5}, {kAnchor, 3}}));
  // d = 8 − 4 = 4
  EXPECT_EQ(after(elastic_pair(kPayload, kCenter, 0.5F, 0.25F), {{kPayload, 8}, {kCenter, 4}}),
            (Values{{kPayload, 6}, {kCenter, 5}}));
  EXPECT_EQ(after(elastic_delta(kPayload, kCenter, 0.5F, 0.25F), {{kPayload, 8}, {kCenter, 4}}),
            (Values{{kPayload, 2}, {kCenter, 5}}));
  const core::OptimizerStep momentum{.kind = core::OptimizerKind::momentum, .lr = 0.5F, .momentum = 0.5F};
  // v = 0.5 · 4 − 0.5 · 2 = 1
  EXPECT_EQ(after(optimize(kParams, kGrads, kVelocity, momentum), {{kParams, 10}, {kGrads, 2}, {kVelocity, 4}}),
            (Values{{kParams, 11}, {kGrads, 2}, {kVelocity, 1}}));
  EXPECT_EQ(after(optimize_delta(kParams, kGrads, kVelocity, momentum), {{kParams, 10}, {kGrads, 2}, {kVelocity, 4}}),
            (Values{{kParams, 10}, {kGrads, 1}, {kVelocity, 1}}));
  // sgd needs no velocity: the slot may have no memory.
  EXPECT_EQ(after(optimize(kParams, kGrads, kVelocity, {.lr = 0.5F}), {{kParams, 10}, {kGrads, 2}}),
            (Values{{kParams, 9}, {kGrads, 2}}));
}

TEST(KernelCall, AdamsSecondStateIsTheNextSlot) {
  const core::OptimizerStep adam{
      .kind = core::OptimizerKind::adam, .lr = 0.5F, .momentum = 0.5F, .decay = 0.75F, .epsilon = 0};
  const auto second = server_state(1);
  const auto call = optimize(kCenter, kPayload, server_state(0), adam);
  const auto result = after(call, {{kCenter, 1}, {kPayload, 4}, {server_state(0), 0}, {second, 0}});
  EXPECT_EQ(result, (std::map<Slot, float>{{kCenter, 0.5F}, {kPayload, 4}, {server_state(0), 2}, {second, 4}}));
  EXPECT_TRUE(writes(call, second));
  EXPECT_TRUE(touches(call, second));
  EXPECT_FALSE(touches(optimize(kCenter, kPayload, server_state(0), {.kind = core::OptimizerKind::rmsprop}), second));
}

TEST(KernelCall, AStepClipsItsGradientFirst) {
  const core::OptimizerStep clipped{.lr = 1, .clip_value = 2};
  const auto step = optimize(kParams, kGrads, kVelocity, clipped);
  EXPECT_EQ(after(step, {{kParams, 10}, {kGrads, 5}}), (std::map<Slot, float>{{kParams, 8}, {kGrads, 2}}));
  EXPECT_TRUE(writes(step, kGrads));
  EXPECT_EQ(after(optimize_delta(kParams, kGrads, kVelocity, clipped), {{kParams, 10}, {kGrads, -5}}),
            (std::map<Slot, float>{{kParams, 10}, {kGrads, 2}}));
  EXPECT_EQ(after(clip(kGrads, {.clip_norm = 1}), {{kGrads, -5}}), (std::map<Slot, float>{{kGrads, -1}}));
  EXPECT_EQ(after(clip(kGrads, {}), {{kGrads, -5}}), (std::map<Slot, float>{{kGrads, -5}}));
}

/// writes() and touches() against run(): a slot is changed or read only if they list it.
TEST(KernelCall, WritesAndTouchesNameTheSlotsThatAreUsed) {
  const core::OptimizerStep momentum{.kind = core::OptimizerKind::momentum, .lr = 0.5F, .momentum = 0.5F};
  const std::vector<KernelCall> calls{fill(kAcc, 9),
                                      copy(kAcc, kParams),
                                      scale(kAcc, 3),
                                      axpy(kAcc, 2, kParams),
                                      scale_add(kAcc, 2, 3, kParams),
                                      difference(kAcc, kParams, kAnchor),
                                      elastic_pair(kAcc, kParams, 0.5F, 0.25F),
                                      elastic_delta(kAcc, kParams, 0.5F, 0.25F),
                                      optimize(kAcc, kParams, kAnchor, momentum),
                                      optimize_delta(kAcc, kParams, kAnchor, momentum)};
  const std::map<Slot, float> before{{kAcc, 11}, {kParams, 5}, {kAnchor, 3}, {kVelocity, 2}};
  for (const auto& call : calls) {
    const auto result = after(call, before);
    for (const auto& [slot, value] : before) {
      EXPECT_EQ(result.at(slot) != value, writes(call, slot))
          << static_cast<int>(call.kernel) << " on " << static_cast<int>(slot.kind);
      EXPECT_TRUE(touches(call, slot) || !writes(call, slot));
    }
    EXPECT_FALSE(touches(call, kVelocity));
  }
  EXPECT_TRUE(touches(copy(kAcc, kParams), kParams));
  EXPECT_FALSE(touches(fill(kAcc, 1), kParams));
}

}  // namespace
}  // namespace troupe::strategies
