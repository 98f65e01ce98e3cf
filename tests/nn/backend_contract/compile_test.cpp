// Compiling: capabilities, what is refused, arenas that are borrowed from the caller, plans.
#include <algorithm>
#include <limits>

#include "tests/nn/backend_contract/backends.hpp"
#include "tests/nn/backend_contract/model.hpp"

namespace troupe::nn::testing {
namespace {

class Compile : public BackendTest {
 protected:
  [[nodiscard]] static core::Error error_of(const CompileOptions& options) {
    auto compiled = backend().compile(small_net(), options);
    return compiled.has_value() ? core::Error{core::Errc::internal, "it compiled"} : compiled.error();
  }
};
TROUPE_OVER_BACKENDS(Compile);

/// Memory that counts what is lent; grants `left` allocations, then none.
class CountedAllocator final : public core::Allocator {
 public:
  explicit CountedAllocator(core::MemorySpace space, int left = std::numeric_limits<int>::max())
      : space_(space), left_(left) {}
  [[nodiscard]] core::MemorySpace space() const noexcept override { return space_; }
  [[nodiscard]] core::Result<void*> allocate(std::size_t bytes) override {
    if (left_-- <= 0) return core::fail(core::Errc::out_of_memory, "no more");
    auto memory = host_.allocate(bytes);
    if (memory) lent_.push_back({static_cast<const std::byte*>(*memory), bytes});
    return memory;
  }
  void deallocate(void* memory, std::size_t bytes) noexcept override {
    std::erase_if(lent_, [&](const auto& piece) { return piece.data() == memory; });
    host_.deallocate(memory, bytes);
  }
  [[nodiscard]] std::size_t lent() const noexcept { return lent_.size(); }
  [[nodiscard]] bool holds(core::ConstSpan vector) const {
    const auto bytes = std::as_bytes(vector);
    return std::ranges::any_of(lent_, [&](const auto& piece) {
      return bytes.data() >= piece.data() && bytes.data() + bytes.size() <= piece.data() + piece.size();
    });
  }

 private:
  core::HostAllocator host_;
  core::MemorySpace space_;
  int left_;
  std::vector<std::span<const std::byte>> lent_;
};

TEST_P(Compile, CapabilitiesAreEnoughToChooseABackend) {
  const Capabilities can = backend().capabilities();
  EXPECT_EQ(backend().name(), GetParam().name);
  EXPECT_NE(std::ranges::find(can.precisions, Precision::fp32), can.precisions.end());
  EXPECT_GE(can.devices, 1);
  EXPECT_EQ(backend().kernels().space(), can.arena_space);
}

TEST_P(Compile, ReplicasHaveTheKernelsOfTheirArenas) {
  core::HostAllocator plain;
  EXPECT_EQ(backend().arenas().space(), backend().capabilities().arena_space);
  EXPECT_EQ(&backend().kernels_for(backend().arenas()), &backend().kernels());
  for (core::Allocator* memory : {&backend().arenas(), static_cast<core::Allocator*>(&plain)}) {
    const auto replica = backend().compile(small_net(), {.batch = 2, .arenas = memory});
    ASSERT_TRUE(replica) << replica.error().message;
    EXPECT_EQ((*replica)->kernels().space(), memory->space());
    EXPECT_EQ(&(*replica)->kernels(), &backend().kernels_for(*memory));
  }
}

TEST_P(Compile, RefusesFeaturesOutsideTheCapabilities) {
  core::HostAllocator allocator;
  const Capabilities can = backend().capabilities();
  EXPECT_EQ(error_of({.device = can.devices, .arenas = &allocator}).code, core::Errc::config);
  EXPECT_EQ(error_of({.device = -1, .arenas = &allocator}).code, core::Errc::config);
  for (const Precision precision : {Precision::bf16, Precision::tf32, Precision::fp16}) {
    if (std::ranges::find(can.precisions, precision) != can.precisions.end()) continue;
    const auto refused = error_of({.precision = precision, .arenas = &allocator});
    EXPECT_EQ(refused.code, core::Errc::config);
    EXPECT_NE(refused.message.find(name_of(precision)), std::string::npos) << refused.message;
  }
}

TEST_P(Compile, RefusesInvalidBatchesThreadsAndArenas) {
  core::HostAllocator allocator;
  for (const CompileOptions& options :
       {CompileOptions{.batch = 0, .arenas = &allocator}, CompileOptions{.batch = -1, .arenas = &allocator},
        CompileOptions{.threads = 0, .arenas = &allocator}, CompileOptions{.arenas = nullptr}})
    EXPECT_EQ(error_of(options).code, core::Errc::config) << error_of(options).message;
}

TEST_P(Compile, BatchBeyondAllMemoryIsOutOfMemoryWithoutOverflow) {
  core::HostAllocator allocator;
  const auto wide = graph_of({784, 1, 1}, {LinearLayer{1 << 24, {}}, LinearLayer{10, {}}});
  for (const std::int64_t batch : {std::int64_t{1'000'000'000}, std::numeric_limits<std::int64_t>::max()}) {
    const auto compiled = backend().compile(wide, {.batch = batch, .arenas = &allocator});
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.error().code, core::Errc::out_of_memory);
    EXPECT_NE(compiled.error().message.find("layer fc1"), std::string::npos) << compiled.error().message;
  }
}

TEST_P(Compile, TakesEveryArenaFromTheAllocatorAndGivesItBack) {
  const auto net = graph_of({3, 6, 5}, {Conv2dLayer{4, 3, 1, 1, {}, 1, false}, BatchNormLayer{}, LinearLayer{5, {}}});
  CountedAllocator allocator(core::MemorySpace::host_shared);
  for (const bool training : {true, false}) {
    auto replica = backend().compile(net, {.batch = 4, .arenas = &allocator, .training = training});
    ASSERT_TRUE(replica) << replica.error().message;
    EXPECT_TRUE(allocator.holds((*replica)->parameters()));
    EXPECT_TRUE(allocator.holds((*replica)->statistics()));
    if (training) {
      EXPECT_TRUE(allocator.holds((*replica)->gradients()));
    }
    replica->reset();
    EXPECT_EQ(allocator.lent(), 0u);
  }
}

TEST_P(Compile, FailedArenaIsOutOfMemoryAndKeepsNothing) {
  for (const int left : {0, 1}) {  // a training replica needs parameters and gradients
    CountedAllocator scarce(core::MemorySpace::host_shared, left);
    EXPECT_EQ(error_of({.arenas = &scarce}).code, core::Errc::out_of_memory);
    EXPECT_EQ(scarce.lent(), 0u);
  }
}

TEST_P(Compile, ReplicaReportsWhatItWasCompiledFor) {
  Model model(backend(), small_net(), {.batch = 7});
  EXPECT_EQ(model.replica->batch(), 7);
  EXPECT_EQ(model.replica->graph().parameters().size(), model.graph.parameters().size());
  EXPECT_EQ(model.replica->outputs().size(), 7u * 5u);
  EXPECT_GT(model.replica->workspace_bytes(), 0u);
}

TEST_P(Compile, ThePlanOfAReplicaReproducesItsNumbers) {
  Model first(backend(), lenet(), {.batch = 4});
  const Plan plan = first.replica->plan();
  Model planned(backend(), lenet(), {.batch = 4, .plan = &plan});
  EXPECT_EQ(planned.replica->plan().json, plan.json);
  EXPECT_EQ(planned.replica->layout_fingerprint(), first.replica->layout_fingerprint());
  for (int i = 0; i < 3; ++i) {
    first.momentum_step();
    planned.momentum_step();
  }
  EXPECT_EQ(first.numbers(first.replica->parameters()), planned.numbers(planned.replica->parameters()));
}

TEST_P(Compile, AnInvalidPlanIsRefusedAsAPlan) {
  core::HostAllocator allocator;
  for (const char* text : {"", "[]", "{}", "not json", R"({"backend":"another","version":1})"}) {
    const Plan plan{text};
    const auto refused = error_of({.arenas = &allocator, .plan = &plan});
    EXPECT_EQ(refused.code, core::Errc::config) << text;
    EXPECT_TRUE(refused.message.starts_with(kPlanRefused)) << refused.message;
  }
}

}  // namespace
}  // namespace troupe::nn::testing
