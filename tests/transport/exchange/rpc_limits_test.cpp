// More calls at once than a callee takes from one peer.
#include <string>
#include <utility>
#include <vector>

#include "tests/transport/exchange/rpc_over.hpp"

namespace troupe::exchange::testing {
namespace {

class RpcLimits : public RpcOver {};

INSTANTIATE_TEST_SUITE_P(Endpoints, RpcLimits, ::testing::ValuesIn(transport::testing::endpoint_kinds()),
                         transport::testing::kind_name);

/// A worker calls every shard of the centre at once, perhaps twice; a site may have as many shards as it likes.
TEST_P(RpcLimits, ACallerKeepsBelowTheLimitOfCallsAndTheirOrder) {
  constexpr std::size_t kCalls = 2 * kMostCalls;
  std::vector<std::string> served;
  std::vector<Rpc::Reply> held;
  std::size_t answered = 0;
  serve = [&](Rpc::Incoming incoming) {
    served.emplace_back(incoming.header);
    held.push_back(incoming.reply);
  };
  for (std::size_t k = 0; k < kCalls; ++k)
    call(0, {.header = std::to_string(k)}, [&](const core::Result<std::string_view>& answer) {
      ASSERT_TRUE(answer) << answer.error().message;
      ++answered;
    });
  group_->drive([&] { return held.size() == kMostCallsBegun; });
  for (int k = 0; k < 10; ++k) group_->poll();
  EXPECT_EQ(held.size(), kMostCallsBegun) << "the others wait";
  group_->drive([&] {
    for (auto& reply : std::exchange(held, {})) reply("");
    return open_ == 0;
  });
  EXPECT_EQ(answered, kCalls);
  ASSERT_EQ(served.size(), kCalls);
  for (std::size_t k = 0; k < kCalls; ++k) ASSERT_EQ(served[k], std::to_string(k));
}

TEST_P(RpcLimits, LostPeerEndsCallsThatWaitForOthers) {
  serve = [](auto) {};  // never answers
  std::size_t failed = 0;
  for (std::size_t k = 0; k < kMostCallsBegun + 3; ++k)
    call(0, {.header = ""}, [&](const auto& answer) { failed += answer ? 0 : 1; });
  group_->poll();
  group_->endpoint(1).close();
  finish();
  EXPECT_EQ(failed, kMostCallsBegun + 3);
}

}  // namespace
}  // namespace troupe::exchange::testing
