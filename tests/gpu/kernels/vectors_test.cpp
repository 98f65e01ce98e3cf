// core::Kernels' calls on a device give the bits of core::reference_kernels(), at any length, aligned or not.
#include <cmath>
#include <limits>

#include "core/kernels.hpp"
#include "gpu/device/host_launch.hpp"
#include "gpu/kernels/bodies/optimizers.hpp"
#include "tests/gpu/kernels/testing.hpp"

namespace troupe::gpu::testing {
namespace {

using core::OptimizerKind;

constexpr std::int64_t kLengths[] = {1, 3, 4, 5, 8, 31, 257, 4099};

/// A vector on the "device" beside the same on the host.
struct Pair {
  Tensor device;
  std::vector<float> host;
  Pair(std::int64_t count, std::uint64_t stream, std::int64_t shift)
      : device(Type::fp32, random_values(Type::fp32, count, stream), shift) {
    for (std::int64_t i = 0; i < count; ++i) host.push_back(static_cast<float>(device[i]));
  }
  float* at() { return static_cast<float*>(device.data()); }
  void expect_equal(const char* what) const {
    EXPECT_TRUE(device.is_intact()) << what;
    for (std::int64_t i = 0; i < device.size(); ++i)
      ASSERT_EQ(static_cast<float>(device[i]), host[static_cast<std::size_t>(i)]) << what << ", element " << i;
  }
};

class Vectors : public ::testing::TestWithParam<std::tuple<std::int64_t, std::int64_t>> {
 protected:
  [[nodiscard]] static std::int64_t count() { return std::get<0>(GetParam()); }
  [[nodiscard]] static std::int64_t shift() { return std::get<1>(GetParam()); }
  [[nodiscard]] static Pair vector(std::uint64_t stream) { return {count(), stream, shift()}; }
  [[nodiscard]] static const core::Kernels& reference() { return core::reference_kernels(); }
};
INSTANTIATE_TEST_SUITE_P(Lengths, Vectors, ::testing::Combine(::testing::ValuesIn(kLengths), ::testing::Values(0, 1)));

TEST_P(Vectors, ElementwiseCallsHaveTheBitsOfTheReference) {
  Pair y = vector(1);
  Pair x = vector(2);
  run(Axpy{y.at(), x.at(), 0.3f, count()});
  reference().axpy(y.host, 0.3f, x.host);
  y.expect_equal("axpy");
  run(ScaleAdd{y.at(), x.at(), 0.7f, -1.3f, count()});
  reference().scale_add(y.host, 0.7f, -1.3f, x.host);
  y.expect_equal("scale_add");
  run(Scale{y.at(), 1.1f, count()});
  reference().scale(y.host, 1.1f);
  y.expect_equal("scale");
  const float factor = 0.9F;
  run(ScaleBy{y.at(), &factor, count()});
  reference().scale(y.host, factor);
  y.expect_equal("scale_by");
  run(Difference{y.at(), y.at(), x.at(), count()});
  reference().difference(y.host, y.host, x.host);
  y.expect_equal("difference");
  run(Clamp{y.at(), 0.5f, count()});
  reference().clamp(y.host, 0.5f);
  y.expect_equal("clamp");
  run(ElasticPair{x.at(), y.at(), 0.2f, 0.6f, count()});
  reference().elastic_pair(x.host, y.host, 0.2f, 0.6f);
  x.expect_equal("elastic_pair");
  y.expect_equal("elastic_pair");
  run(ElasticDelta{x.at(), y.at(), 0.2f, 0.6f, count()});
  reference().elastic_delta(x.host, y.host, 0.2f, 0.6f);
  x.expect_equal("elastic_delta");
  y.expect_equal("elastic_delta");
  run(Fill{y.at(), -2.5f, count()});
  reference().fill(y.host, -2.5f);
  y.expect_equal("fill");
}

TEST_P(Vectors, SumsOfManyVectorsHaveTheBitsOfTheReference) {
  for (const int vectors : {1, 2, 5, 16}) {
    std::vector<Pair> all;
    for (int v = 0; v < vectors; ++v) all.push_back(vector(static_cast<std::uint64_t>(10 + v)));
    ReduceAll call{{}, vectors, 0.25f, count()};
    std::vector<core::Span> spans;
    for (int v = 0; v < vectors; ++v) {
      auto& pair = all[static_cast<std::size_t>(v)];
      call.all[static_cast<std::size_t>(v)] = pair.at();
      spans.emplace_back(pair.host);
    }
    run(call);
    reference().reduce_all(spans, 0.25f);
    for (const Pair& pair : all) pair.expect_equal("reduce_all");
  }
}

TEST_P(Vectors, HalvesHaveTheBitsOfTheReference) {
  for (const auto kind : {core::HalfKind::bf16, core::HalfKind::fp16}) {
    const Type type = kind == core::HalfKind::bf16 ? Type::bf16 : Type::fp16;
    Pair x = vector(3);
    Pair y = vector(4);
    Tensor half(type, count(), shift());
    auto* const halves = static_cast<std::uint16_t*>(half.data());
    std::vector<std::uint16_t> expected(static_cast<std::size_t>(count()));
    run(Narrow{halves, x.at(), kind, count()});
    reference().narrow(expected, x.host, kind);
    EXPECT_TRUE(half.is_intact());
    for (std::int64_t i = 0; i < count(); ++i) ASSERT_EQ(halves[i], expected[static_cast<std::size_t>(i)]) << i;
    run(Widen{y.at(), halves, kind, true, count()});
    reference().add_wide(y.host, expected, kind);
    y.expect_equal("add_wide");
    run(Widen{y.at(), halves, kind, false, count()});
    reference().widen(y.host, expected, kind);
    y.expect_equal("widen");
  }
}

TEST_P(Vectors, OptimizersHaveTheBitsOfTheReference) {
  for (const auto& row : core::kOptimizers)
    for (const bool delta : {false, true}) {
      ASSERT_EQ(state_vectors(row.kind), row.state_slots) << row.name;
      const core::OptimizerStep step{.kind = row.kind, .lr = 0.01f, .momentum = 0.9f, .weight_decay = 0.02f, .t = 3};
      const core::StepNumbers numbers = core::step_numbers(step);
      Pair x = vector(5);
      Pair g = vector(6);
      Pair first = vector(7);
      Pair second = vector(8);
      for (Pair* state : {&first, &second})  // means of squares
        for (std::int64_t i = 0; i < count(); ++i) {
          state->device.set(i, std::abs(state->device[i]));
          state->host[static_cast<std::size_t>(i)] = std::abs(state->host[static_cast<std::size_t>(i)]);
        }
      run(Optimize{row.kind, x.at(), g.at(), row.state_slots > 0 ? first.at() : nullptr,
                   row.state_slots > 1 ? second.at() : nullptr, numbers, delta, count()});
      if (delta)
        reference().optimize_delta(x.host, g.host, {first.host, second.host}, step);
      else
        reference().optimize(x.host, g.host, {first.host, second.host}, step);
      for (const Pair* vector : {&x, &g, &first, &second}) vector->expect_equal(std::string(row.name).c_str());
    }
}

TEST_P(Vectors, NormHasTheBitsOfTheReferenceAndLimitsAsClipDoes) {
  Pair g = vector(9);
  std::vector<double> chunks(squared_norm_scratch(count()));
  double squared = -1;
  run(SquaredNorm{g.at(), chunks.data(), &squared, count()});
  EXPECT_EQ(squared, reference().squared_norm(g.host));
  for (const float norm : {0.5f, 1e9f}) {
    run(LimitNorm{g.at(), &squared, norm, count()});
    core::clip(reference(), g.host, 0, norm);
    g.expect_equal("clip");
    squared = reference().squared_norm(g.host);
  }
  squared = std::numeric_limits<double>::quiet_NaN();
  run(LimitNorm{g.at(), &squared, 0.1f, count()});
  g.expect_equal("a norm that is not finite");
}

TEST_P(Vectors, OneElementOutsideTheLimitIsFoundWhereverItIs) {
  Pair x = vector(11);
  std::int32_t within = -1;
  const auto all_within = [&](float limit) {
    run(AllWithin{x.at(), limit, &within, count()});
    return within;
  };
  EXPECT_EQ(all_within(2.0f), 1);
  for (const std::int64_t at : {std::int64_t{0}, count() / 2, count() - 1})
    for (const double bad : {2.5, -2.5, std::numeric_limits<double>::quiet_NaN()}) {
      const double kept = x.device[at];
      x.device.set(at, bad);
      EXPECT_EQ(all_within(2.0f), 0) << bad << " at " << at;
      x.device.set(at, kept);
    }
  x.device.set(count() - 1, std::numeric_limits<double>::infinity());
  EXPECT_EQ(all_within(std::numeric_limits<float>::max()), 0);
}

/// Several blocks of chunks, the last one not full; and threads in the other order.
TEST(NormKernel, LongVectorHasTheBitsOfTheReference) {
  constexpr std::int64_t kCount = 19 * 4096 + 77;
  Pair x(kCount, 12, 0);
  std::vector<double> chunks(squared_norm_scratch(kCount));
  for (const auto order : {host::ThreadOrder::ascending, host::ThreadOrder::descending}) {
    double squared = -1;
    host::execute(SquaredNorm{x.at(), chunks.data(), &squared, kCount}, order);
    EXPECT_EQ(squared, core::reference_kernels().squared_norm(x.host));
  }
}

}  // namespace
}  // namespace troupe::gpu::testing
