// Lifetimes of operands, working copies, recomputation.
#include "gpu/program/program_builder.hpp"

#include <gtest/gtest.h>

#include "gpu/device/host_device.hpp"

namespace troupe::gpu::testing {
namespace {

constexpr TensorShape kShape{.batch = 1, .channels = 1000};

/// y ← f(x), recorded by name.
void add(ProgramBuilder& builder, Phase phase, const Operand& x, const Operand& y) {
  builder.add_kernel(phase, "copy", {x}, {y}, [=](const Addresses& at) {
    return ActivationForward{nn::Activation::relu, at(x), at(y), 1000, Type::fp32};
  });
}

const ActivationForward& kernel_of(const Operation& operation) {
  return std::get<ActivationForward>(std::get<Kernel>(operation.work));
}

TEST(ProgramBuilder, OperandsThatLiveAtDifferentTimesShareMemory) {
  HostDevice device;
  ProgramBuilder builder(0, Type::fp32);
  std::vector<Operand> chain;
  for (int i = 0; i < 6; ++i) chain.push_back(builder.make(kShape, Type::fp32));
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) add(builder, Phase::forward, chain[i], chain[i + 1]);
  const nn::Layout none;
  EXPECT_EQ(builder.plan(none, false), 2u * 4096u);  // 4000 bytes, in units of 256; two at a time
  auto program = builder.build({none, none}, device.memory()).value();
  for (const Operation& operation : program.forward) EXPECT_NE(kernel_of(operation).x, kernel_of(operation).y);
}

TEST(ProgramBuilder, OperandsOfTheReplicaLiveAsLongAsItNeedsThem) {
  ProgramBuilder builder(0, Type::fp32);
  const Operand input = builder.make(kShape, Type::fp32, Life::from_start);
  const Operand first = builder.make(kShape, Type::fp32);
  const Operand second = builder.make(kShape, Type::fp32);
  const Operand third = builder.make(kShape, Type::fp32);
  const Operand output = builder.make(kShape, Type::fp32);
  add(builder, Phase::forward, first, output);
  builder.keep_to_end(output);
  add(builder, Phase::forward, input, second);
  add(builder, Phase::backward, second, third);
  const nn::Layout none;
  // output, and first with input, input with second, or second with third
  EXPECT_EQ(builder.plan(none, false), 3u * 4096u);
}

TEST(ProgramBuilder, BackwardComputesAgainWhatItCan) {
  HostDevice device;
  for (const bool recompute : {false, true}) {
    ProgramBuilder builder(0, Type::fp32);
    const Operand x = builder.make(kShape, Type::fp32, Life::from_start);
    const Operand y = builder.make(kShape, Type::fp32);
    const Operand z = builder.make(kShape, Type::fp32);
    const Operand end = builder.make(kShape, Type::fp32);
    const auto draft = [](const Operand& from, const Operand& to) {
      return ProgramBuilder::kernel_draft("copy", {from}, {to}, [=](const Addresses& at) {
        return ActivationForward{nn::Activation::relu, at(from), at(to), 1000, Type::fp32};
      });
    };
    builder.add(Phase::forward, draft(x, y));
    builder.add_recomputation(y, draft(x, y));
    builder.add(Phase::forward, draft(y, z));
    builder.add_recomputation(z, draft(y, z));
    add(builder, Phase::backward, z, end);
    add(builder, Phase::backward, x, end);
    const nn::Layout none;
    (void)builder.plan(none, recompute);
    auto program = builder.build({none, none}, device.memory()).value();
    ASSERT_EQ(program.backward.size(), recompute ? 4u : 2u);
    if (!recompute) continue;
    // x → y' → z' → end
    EXPECT_EQ(kernel_of(program.backward[0]).x, kernel_of(program.forward[0]).x);
    EXPECT_EQ(kernel_of(program.backward[1]).x, kernel_of(program.backward[0]).y);
    EXPECT_EQ(kernel_of(program.backward[2]).x, kernel_of(program.backward[1]).y);
    EXPECT_EQ(kernel_of(program.backward[3]).x, kernel_of(program.forward[0]).x);
  }
}

TEST(ProgramBuilder, WhatForwardOverwritesIsNotComputedAgain) {
  ProgramBuilder builder(0, Type::fp32);
  const Operand x = builder.make(kShape, Type::fp32, Life::from_start);
  const Operand y = builder.make(kShape, Type::fp32);
  add(builder, Phase::forward, x, y);
  builder.add_recomputation(y, ProgramBuilder::kernel_draft("copy", {x}, {y}, [=](const Addresses& at) {
                              return ActivationForward{nn::Activation::relu, at(x), at(y), 1000, Type::fp32};
                            }));
  add(builder, Phase::forward, y, y);  // in place
  add(builder, Phase::backward, y, x);
  HostDevice device;
  const nn::Layout none;
  (void)builder.plan(none, true);
  EXPECT_EQ(builder.build({none, none}, device.memory()).value().backward.size(), 1u);
}

TEST(ProgramBuilder, WorkingCopiesAreOneCastOverTheArena) {
  HostDevice device;
  ProgramBuilder builder(2, Type::bf16);
  builder.set_parameter_layout(0, {1}, 20);
  builder.set_parameter_layout(1, {1}, 7);
  const std::vector<nn::Parameter> parameters{{.name = "a", .shape = {20}, .initialiser = {}},
                                              {.name = "b", .shape = {7}, .initialiser = {}}};
  const nn::Layout layout = builder.arena_layout(parameters);
  const nn::Layout none;
  const Operand b = builder.working(1);
  const Operand to = builder.make({.batch = 1, .channels = 7}, Type::bf16);
  builder.copy(Phase::forward, b, to);
  (void)builder.plan(layout, false);
  auto arena = core::Buffer::allocate(device.memory(), layout.arena_floats()).value();
  auto program = builder.build({layout, none, arena.data()}, device.memory()).value();
  ASSERT_EQ(program.refresh.size(), 1u);
  const auto& cast = std::get<Cast>(std::get<Kernel>(program.refresh[0].work));
  EXPECT_EQ(cast.from, arena.data());
  EXPECT_EQ(cast.count, static_cast<std::int64_t>(layout.arena_floats()));
  const auto& copy = std::get<CopyWork>(program.forward[0].work);
  EXPECT_EQ(copy.from, static_cast<const std::byte*>(cast.to) + 2 * layout.tensors()[1].offset);
}

}  // namespace
}  // namespace troupe::gpu::testing
