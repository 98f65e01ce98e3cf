#include <limits>

#include <gtest/gtest.h>

#include "tests/cpu/model.hpp"

namespace troupe::cpu::testing {
namespace {

using namespace nn;

core::Error error_of(const CompileOptions& options) {
  auto compiled = make_backend()->compile(small_net(), options);
  return compiled.has_value() ? core::Error{core::Errc::internal, "it compiled"} : compiled.error();
}

TEST(Backend, SaysWhatItCanDo) {
  const auto backend = make_backend();
  EXPECT_EQ(backend->name(), "cpu");
  EXPECT_EQ(backend->capabilities().precisions, std::vector{Precision::fp32});
  EXPECT_EQ(backend->capabilities().arena_space, core::MemorySpace::host);
  EXPECT_EQ(&backend->kernels(), &core::host_kernels());
}

TEST(Backend, RefusesWhatItCannotCompute) {
  core::HostAllocator allocator;
  for (const CompileOptions& options :
       {CompileOptions{.precision = Precision::bf16, .arenas = &allocator},
        CompileOptions{.device = 1, .arenas = &allocator}, CompileOptions{.batch = 0, .arenas = &allocator},
        CompileOptions{.threads = 0, .arenas = &allocator}, CompileOptions{}})
    EXPECT_EQ(error_of(options).code, core::Errc::config) << error_of(options).message;
  EXPECT_NE(error_of({.precision = Precision::bf16, .arenas = &allocator}).message.find("bf16"), std::string::npos);
}

/// Grants `left` allocations, then none.
class Scarce final : public core::Allocator {
 public:
  explicit Scarce(int left) : left_(left) {}
  [[nodiscard]] core::MemorySpace space() const noexcept override { return core::MemorySpace::host_shared; }
  [[nodiscard]] core::Result<void*> allocate(std::size_t bytes) override {
    if (left_-- <= 0) return core::fail(core::Errc::out_of_memory, "no more");
    return host_.allocate(bytes);
  }
  void deallocate(void* memory, std::size_t bytes) noexcept override { host_.deallocate(memory, bytes); }

 private:
  core::HostAllocator host_;
  int left_;
};

TEST(Backend, ABatchThatNoMachineHoldsIsRefusedBeforeAnySizeOverflows) {
  core::HostAllocator allocator;
  const auto wide = graph_of({784, 1, 1}, {LinearLayer{1 << 24, {}}, LinearLayer{10, {}}});
  for (const std::int64_t batch : {std::int64_t{1'000'000'000}, std::numeric_limits<std::int64_t>::max()}) {
    const auto compiled = make_backend()->compile(wide, {.batch = batch, .arenas = &allocator});
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.error().code, core::Errc::out_of_memory);
    EXPECT_NE(compiled.error().message.find("layer fc1"), std::string::npos) << compiled.error().message;
  }
}

TEST(Backend, TakesArenasFromTheAllocatorGiven) {
  for (const int left : {0, 1}) {
    Scarce scarce(left);
    EXPECT_EQ(error_of({.arenas = &scarce}).code, core::Errc::out_of_memory);
  }
  Scarce enough(2);  // parameters and gradients
  EXPECT_EQ(error_of({.arenas = &enough}).message, "it compiled");
}

}  // namespace
}  // namespace troupe::cpu::testing
