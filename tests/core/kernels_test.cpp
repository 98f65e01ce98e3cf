// Every fast kernel against the reference, bit for bit, at lengths around the vector widths, the chunks and the size from which
// stores bypass the caches, and for all offsets of a slice.
#include "core/kernels.hpp"

#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/kernels_host.hpp"
#include "core/kernels_loops.hpp"
#include "core/random.hpp"

namespace troupe::core {
namespace {

constexpr std::size_t kVectors = 5;

/// Equal-sized aligned vectors of normal numbers.
struct Operands {
  explicit Operands(std::size_t size) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      buffers.push_back(Buffer::allocate(allocator, align_floats(size)).value());
      Random random(17, Purpose::test, v);
      for (std::size_t i = 0; i < std::min(size, kRandom); ++i)
        buffers[v].data()[i] = static_cast<float>(random.normal());
      for (std::size_t i = kRandom; i < size; ++i)
        buffers[v].data()[i] = buffers[v].data()[i - kRandom] + static_cast<float>(i);
      vectors.push_back(buffers[v].view().first(size));
    }
  }
  static constexpr std::size_t kRandom = 100'000;  // more random draws would take longer than the test
  HostAllocator allocator;
  std::vector<Buffer> buffers;
  std::vector<Span> vectors;
};

struct Call {
  std::string name;
  std::function<void(const Kernels&, const std::vector<Span>&)> run;
};

OptimizerStep step_of(OptimizerKind kind) {
  return {.kind = kind, .lr = 0.01f, .momentum = 0.9f, .weight_decay = 0.0005f, .decay = 0.99f, .t = 3};
}
OptimizerState state_of(OptimizerKind kind, const std::vector<Span>& v) {
  return {state_slots(kind) > 0 ? v[2] : Span{}, state_slots(kind) > 1 ? v[3] : Span{}};
}
/// A state whose root the optimizer takes is not negative.
void squares(const Kernels& k, OptimizerKind kind, const std::vector<Span>& v) {
  const auto& row = optimizer_info(kind);
  if (row.epsilon) k.fill(v[row.state_slots == 2 ? 3 : 2], 0.25f);
  if (kind == OptimizerKind::adadelta) k.fill(v[2], 0.5f);
}

std::vector<Call> element_wise_calls() {
  std::vector<Call> calls = {
      {"fill", [](const Kernels& k, const auto& v) { k.fill(v[0], 0.1f); }},
      {"copy", [](const Kernels& k, const auto& v) { k.copy(v[0], v[1]); }},
      {"scale", [](const Kernels& k, const auto& v) { k.scale(v[0], 0.3f); }},
      {"axpy", [](const Kernels& k, const auto& v) { k.axpy(v[0], 0.3f, v[1]); }},
      {"scale_add", [](const Kernels& k, const auto& v) { k.scale_add(v[0], 0.3f, 0.7f, v[1]); }},
      {"difference", [](const Kernels& k, const auto& v) { k.difference(v[0], v[1], v[2]); }},
      {"difference in place", [](const Kernels& k, const auto& v) { k.difference(v[0], v[1], v[0]); }},
      {"elastic_pair", [](const Kernels& k, const auto& v) { k.elastic_pair(v[0], v[1], 0.3f, 0.1f); }},
      {"elastic_delta", [](const Kernels& k, const auto& v) { k.elastic_delta(v[0], v[1], 0.3f, 0.1f); }},
      {"broadcast_all", [](const Kernels& k, const auto& v) { k.broadcast_all(v, 3); }},
  };
  for (std::size_t n = 1; n <= kVectors; ++n)
    calls.push_back({"reduce_all of " + std::to_string(n), [n](const Kernels& k, const auto& v) {
                       k.reduce_all(std::span(v).first(n), 1.0f / static_cast<float>(n));
                     }});
  calls.push_back({"clamp", [](const Kernels& k, const auto& v) { k.clamp(v[0], 0.7f); }});
  for (const auto& row : kOptimizers) {
    const OptimizerKind kind = row.kind;
    const auto suffix = std::to_string(static_cast<int>(kind));
    calls.push_back({"optimize " + suffix, [=](const Kernels& k, const auto& v) {
                       squares(k, kind, v);
                       k.optimize(v[0], v[1], state_of(kind, v), step_of(kind));
                     }});
    calls.push_back({"optimize_delta " + suffix, [=](const Kernels& k, const auto& v) {
                       squares(k, kind, v);
                       k.optimize_delta(v[0], v[1], state_of(kind, v), step_of(kind));
                     }});
  }
  return calls;
}

::testing::AssertionResult same_bits(const std::vector<Span>& a, const std::vector<Span>& b) {
  for (std::size_t v = 0; v < a.size(); ++v)
    if (a[v].size() != 0 && std::memcmp(a[v].data(), b[v].data(), a[v].size_bytes()) != 0) {
      std::size_t i = 0;
      while (std::memcmp(&a[v][i], &b[v][i], sizeof(float)) == 0) ++i;
      return ::testing::AssertionFailure() << "vector " << v << "[" << i << "] is " << a[v][i] << ", not " << b[v][i];
    }
  return ::testing::AssertionSuccess();
}

class KernelsOf : public ::testing::TestWithParam<HostVariant> {
 protected:
  const Kernels& fast = *GetParam().kernels;
  const Kernels& reference = reference_kernels();
};

INSTANTIATE_TEST_SUITE_P(Host, KernelsOf, ::testing::ValuesIn(host_variants()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(KernelsOf, EqualTheReferenceBitForBit) {
  for (const std::size_t size : {0, 1, 7, 8, 15, 16, 17, 31, 63, 64, 65, 1000, 1023, 1024, 1025, 4097, 33'333}) {
    for (const Call& call : element_wise_calls()) {
      const Operands actual(size);
      const Operands expected(size);
      call.run(fast, actual.vectors);
      call.run(reference, expected.vectors);
      ASSERT_TRUE(same_bits(actual.vectors, expected.vectors)) << call.name << " of " << size;
    }
  }
}

TEST_P(KernelsOf, EqualTheReferenceWhereStoresBypassTheCaches) {
  const std::size_t size = kStreamingFloats + 37;
  const Operands actual(size);
  const Operands expected(size);
  for (const Call& call : element_wise_calls()) {
    if (call.name != "fill" && call.name != "difference" && call.name != "broadcast_all") continue;
    call.run(fast, actual.vectors);
    call.run(reference, expected.vectors);
    ASSERT_TRUE(same_bits(actual.vectors, expected.vectors)) << call.name;
  }
}

TEST_P(KernelsOf, WriteNothingOutsideTheirSpans) {
  for (const Call& call : element_wise_calls()) {
    for (const std::size_t size : {1, 16, 21, 1029}) {
      const Operands operands(size + 32);  // the test checks whole vectors and passes a part
      const Operands before(size + 32);
      std::vector<Span> middle, left, left_before, right, right_before;
      for (std::size_t v = 0; v < kVectors; ++v) {
        middle.push_back(operands.vectors[v].subspan(16, size));
        left.push_back(operands.vectors[v].first(16));
        left_before.push_back(before.vectors[v].first(16));
        right.push_back(operands.vectors[v].subspan(16 + size));
        right_before.push_back(before.vectors[v].subspan(16 + size));
      }
      call.run(fast, middle);
      ASSERT_TRUE(same_bits(left, left_before)) << call.name << " of " << size;
      ASSERT_TRUE(same_bits(right, right_before)) << call.name << " of " << size;
    }
  }
}

TEST_P(KernelsOf, DoNotDependOnWhereAVectorIsCut) {
  constexpr std::size_t kSize = 3000;
  for (const Call& call : element_wise_calls()) {
    const Operands whole(kSize);
    call.run(fast, whole.vectors);
    for (const std::size_t slice : {16, 48, 1008, 1040}) {
      const Operands cut(kSize);
      for (std::size_t begin = 0; begin < kSize; begin += slice) {
        std::vector<Span> slices;
        for (const Span& vector : cut.vectors) slices.push_back(vector.subspan(begin, std::min(slice, kSize - begin)));
        call.run(fast, slices);
      }
      ASSERT_TRUE(same_bits(cut.vectors, whole.vectors)) << call.name << " in slices of " << slice;
    }
  }
}

TEST_P(KernelsOf, NormEqualsTheReferenceBitForBit) {
  for (const std::size_t size : {0, 1, 31, 32, 33, 4095, 4096, 4097, 8193, 100'000}) {
    const Operands x(size);
    EXPECT_EQ(fast.squared_norm(x.vectors[0]), reference.squared_norm(x.vectors[0])) << size;
  }
}

TEST_P(KernelsOf, DeltaThenAddEqualsTheStep) {
  constexpr std::size_t kSize = 1000;
  for (const auto& row : kOptimizers) {
    const OptimizerKind kind = row.kind;
    const Operands at_once(kSize);
    const Operands in_two(kSize);
    const auto& a = at_once.vectors;
    const auto& b = in_two.vectors;
    squares(fast, kind, a);
    squares(fast, kind, b);
    fast.optimize(a[0], a[1], state_of(kind, a), step_of(kind));
    fast.optimize_delta(b[0], b[1], state_of(kind, b), step_of(kind));
    fast.axpy(b[0], 1, b[1]);
    ASSERT_TRUE(same_bits({b[0], b[2], b[3]}, {a[0], a[2], a[3]})) << static_cast<int>(kind);
  }
}

TEST_P(KernelsOf, RefuseUnequalVectors) {
  const Operands operands(32);
  const Span longer = operands.vectors[0];
  const Span shorter = operands.vectors[1].first(16);
  const OptimizerStep momentum{OptimizerKind::momentum, 0.1f, 0.9f, 0};
  EXPECT_THROW(fast.copy(longer, shorter), std::invalid_argument);
  EXPECT_THROW(fast.axpy(shorter, 1, longer), std::invalid_argument);
  EXPECT_THROW(fast.scale_add(shorter, 1, 1, longer), std::invalid_argument);
  EXPECT_THROW(fast.difference(longer, longer, shorter), std::invalid_argument);
  EXPECT_THROW(fast.elastic_pair(longer, shorter, 1, 1), std::invalid_argument);
  EXPECT_THROW(fast.elastic_delta(longer, shorter, 1, 1), std::invalid_argument);
  EXPECT_THROW(fast.reduce_all({}, 1), std::invalid_argument);
  EXPECT_THROW(fast.reduce_all(std::vector<Span>{longer, shorter}, 1), std::invalid_argument);
  EXPECT_THROW(fast.broadcast_all(std::vector<Span>{longer, longer}, 2), std::invalid_argument);
  EXPECT_THROW(fast.optimize(longer, longer, {}, momentum), std::invalid_argument);
  EXPECT_THROW(fast.optimize_delta(longer, shorter, Span(longer), momentum), std::invalid_argument);
}

TEST_P(KernelsOf, WorkOnSlicesOfOneVectorAtOnce) {
  constexpr std::size_t kSize = 64'000;
  constexpr std::size_t kThreads = 4;
  const Operands shared(kSize);
  const Operands expected(kSize);
  reference.reduce_all(expected.vectors, 0.2f);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        std::vector<Span> slices;
        for (const Span& vector : shared.vectors)
          slices.push_back(vector.subspan(t * kSize / kThreads, kSize / kThreads));
        fast.reduce_all(slices, 0.2f);
      });
  }
  EXPECT_TRUE(same_bits(shared.vectors, expected.vectors));
}

TEST(HostKernels, AreTheFirstVariantAndTheReferenceIsTheLast) {
  const auto variants = host_variants();
  ASSERT_FALSE(variants.empty());
  EXPECT_EQ(&host_kernels(), variants.front().kernels);
  EXPECT_EQ(&reference_kernels(), variants.back().kernels);
  EXPECT_EQ(variants.back().name, "reference");
  EXPECT_EQ(host_kernels().space(), MemorySpace::host);
}

}  // namespace
}  // namespace troupe::core
