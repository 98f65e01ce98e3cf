// Messages longer than 32 bits can count, and tags at the limits of their fields: every endpoint behaves the same.
#include <algorithm>
#include <limits>
#include <span>

#include "endpoint_contract.hpp"
#include "repeated_memory.hpp"

namespace troupe::transport::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

MemoryView host(std::span<std::byte> bytes) { return {bytes.data(), bytes.size(), core::MemorySpace::host}; }

class EndpointLengths : public EndpointContract {};

INSTANTIATE_TEST_SUITE_P(Endpoints, EndpointLengths, ::testing::ValuesIn(endpoint_kinds()), kind_name);

/// A message longer than 2 GiB arrives whole: a library's `signed int` cannot count it.
TEST_P(EndpointLengths, AMessageAboveTwoGiBArrivesWhole) {
  if (kSanitized) GTEST_SKIP() << "takes too long under a sanitizer";
  const auto& variant = GetParam().variant;
  if (GetParam().on_device)
    GTEST_SKIP() << "EndpointOptions::staging_bytes bounds what device memory is staged through";
  if (variant == "Pieces") GTEST_SKIP() << "millions of pieces";
  if (GetParam().name == "ucx" && !variant.empty()) GTEST_SKIP() << "UCX counts alike over all transports";
  constexpr std::size_t kSize = (std::size_t{1} << 31) + 4100;
  auto& a = party("a");
  auto& b = party("b");
  const auto [b_at_a, a_at_b] = join(a, b);
  const RepeatedMemory from(kSize), to(kSize);
  const auto bytes = pattern(RepeatedMemory::kPeriod, 7);
  std::ranges::copy(bytes, from.first(bytes.size()).begin());
  const auto receiving = b.receive(a_at_b, tag(1), view(host(to.first(kSize))));
  const auto sending = a.send(b_at_a, tag(1), view(host(from.first(kSize))));
  a.expect_done(sending, kSize);
  b.expect_done(receiving, kSize);
  EXPECT_TRUE(std::ranges::equal(to.first(bytes.size()), bytes));
  EXPECT_EQ(a->traffic(b_at_a).bytes_sent, kSize);
  EXPECT_EQ(b->traffic(a_at_b).bytes_received, kSize);
  exchange(a, b_at_a, b, a_at_b, tag(2));
}

/// Lengths are compared in 64 bits: no length is truncated to 32.
TEST_P(EndpointLengths, LengthsThatDifferByFourGiBAreNotEqual) {
  if (GetParam().on_device)
    GTEST_SKIP() << "EndpointOptions::staging_bytes bounds what device memory is staged through";
  auto& a = party("a");
  auto& b = party("b");
  const auto [b_at_a, a_at_b] = join(a, b);
  constexpr std::size_t kFourGiB = std::size_t{1} << 32;
  const RepeatedMemory memory(kFourGiB + 100'000);
  Bytes small(100'000);
  std::uint32_t number = 0;
  for (const std::size_t size : {std::size_t{8}, std::size_t{100'000}}) {
    for (const bool long_message : {true, false}) {
      const auto with = tag(++number);
      const auto longer = memory.first(kFourGiB + size), shorter = std::span(small).first(size);
      const auto receiving = b.receive(a_at_b, with, view(host(long_message ? shorter : longer)));
      const auto sending = a.send(b_at_a, with, view(host(long_message ? longer : shorter)));
      a.expect_failed(sending, core::Errc::corrupt, std::to_string(kFourGiB + size));
      b.expect_failed(receiving, core::Errc::corrupt, std::to_string(kFourGiB + size));
    }
  }
  exchange(a, b_at_a, b, a_at_b, tag(++number));
}

/// Every bit of a tag counts.
TEST_P(EndpointLengths, TagsThatDifferInOneBitDoNotMatch) {
  auto& a = party("a");
  auto& b = party("b");
  const auto [b_at_a, a_at_b] = join(a, b);
  std::vector<Bytes> sent, received;
  std::vector<OperationId> sends, receives;
  sent.reserve(65);
  received.reserve(65);
  constexpr auto kAll = std::numeric_limits<std::uint64_t>::max();
  for (int bit = 0; bit <= 64; ++bit) {
    const Tag with{bit == 64 ? kAll : kAll ^ std::uint64_t{1} << bit};
    sent.push_back(pattern(100 + static_cast<std::size_t>(bit), static_cast<unsigned>(bit)));
    sends.push_back(a.send(b_at_a, with, view(std::as_const(sent.back()))));
  }
  for (int bit = 64; bit >= 0; --bit) {
    const Tag with{bit == 64 ? kAll : kAll ^ std::uint64_t{1} << bit};
    received.emplace_back(sent[static_cast<std::size_t>(bit)].size());
    receives.push_back(b.receive(a_at_b, with, view(received.back())));
  }
  for (std::size_t i = 0; i < sends.size(); ++i) {
    a.expect_done(sends[i], sent[i].size());
    b.expect_done(receives[i], sent[64 - i].size());
    EXPECT_EQ(received[i], sent[64 - i]);
  }
}

}  // namespace
}  // namespace troupe::transport::testing
