/// Two members with an Rpc each, over every endpoint of the contract suite. One thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/transport/exchange/connected_group.hpp"
#include "transport/exchange/rpc.hpp"

namespace troupe::exchange::testing {

constexpr std::size_t kLongestVector = 10'000;

/// Two members with an Rpc each; `serve` answers the calls that the second one receives.
class RpcOver : public ::testing::TestWithParam<transport::testing::EndpointKind> {
 protected:
  void SetUp() override { meet(); }
  /// Two members anew; member 1 listens unless `listens` is false.
  void meet(const PieceOptions& pieces = {}, bool listens = true) {
    group_.reset();
    for (auto& lost : lost_) lost.clear();
    group_.emplace(GetParam(), 2);
    for (std::size_t r = 0; r < 2; ++r) {
      calls_[r] = std::make_unique<Rpc>(
          group_->endpoint(r), group_->operations(r), core::host_kernels(), allocator_, kLongestVector, 1,
          [this](Rpc::Incoming incoming) { serve(std::move(incoming)); },
          [this, r](transport::Peer, const core::Error& error) { lost_[r].push_back(error); }, pieces);
      if (r == 0 || listens) calls_[r]->listen(group_->group(r).peers[1 - r]);
    }
  }
  void TearDown() override { group_.reset(); }

  void call(std::size_t from, Call call, Rpc::Answered answered) {
    ++open_;
    calls_[from]->call(group_->group(from).peers[1 - from], std::move(call), [this, answered](auto result) {
      --open_;
      answered(std::move(result));
    });
  }
  void finish() {
    group_->drive([this] { return open_ == 0; });
  }

  core::HostAllocator allocator_;
  std::optional<ConnectedGroup> group_;
  std::unique_ptr<Rpc> calls_[2];
  std::vector<core::Error> lost_[2];
  std::size_t open_ = 0;
  std::function<void(Rpc::Incoming)> serve = [](auto) { ADD_FAILURE() << "nobody called"; };
};

}  // namespace troupe::exchange::testing
