/// The contract test suite of transport/endpoint.hpp: endpoint_*_test.cpp and mapped_memory_test.cpp run over every
/// EndpointKind. A new endpoint adds one line to endpoint_contract.cpp.
///
/// Tests wait for completions with a distant deadline and never sleep. To prove that something does *not* happen, a test
/// makes a later event happen and checks that the first is absent.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/clock.hpp"
#include "transport/endpoint.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::transport::testing {

struct EndpointKind {
  std::string name;                                // as in make_endpoint
  std::function<EndpointOptions()> meeting_place;  // once per test: what its endpoints share
  std::string variant{};                           // distinguishes two kinds of one name
  bool on_device = false;                          // the tests use a FakeDevice's memory
  std::function<core::Result<std::unique_ptr<Endpoint>>(const EndpointOptions&)> make{};  // empty: make_endpoint
};
void PrintTo(const EndpointKind& kind, std::ostream* out);  // GoogleTest finds it by this name
[[nodiscard]] std::vector<EndpointKind> endpoint_kinds();
[[nodiscard]] std::string kind_name(const ::testing::TestParamInfo<EndpointKind>& info);

using Bytes = std::vector<std::byte>;
[[nodiscard]] Bytes pattern(std::size_t size, unsigned seed);  // two seeds differ in nearly every byte
/// A view of host memory. In an EndpointContract's tests, view() gives the kind of memory under test.
[[nodiscard]] MemoryView view(Bytes& bytes);
[[nodiscard]] ConstMemoryView view(const Bytes& bytes);
[[nodiscard]] Tag tag(std::uint32_t exchange);

/// One member: an endpoint with its own queue. Single thread, except for calls that the endpoint allows from others.
class Party {
 public:
  Party(const EndpointKind& kind, EndpointOptions options, const core::Clock& clock);

  Endpoint* operator->() const { return endpoint_.get(); }
  Endpoint& operator*() const { return *endpoint_; }
  [[nodiscard]] CompletionQueue& queue() const { return *queue_; }
  void destroy() { endpoint_.reset(); }

  /// Starts the operation, or fails the test.
  OperationId send(Peer peer, Tag tag, ConstMemoryView memory);
  OperationId receive(Peer peer, Tag tag, MemoryView memory);
  /// Returns whether there was credit.
  bool try_send(Peer peer, Tag tag, ConstMemoryView memory, OperationId* started = nullptr);

  /// Waits for the completion of `operation` and takes it. Each can be taken once.
  Completion finish(OperationId operation);
  void expect_done(OperationId operation, std::size_t bytes);
  void expect_cancelled(OperationId operation);
  /// Expects a failure with `code` and a message that contains `names`.
  void expect_failed(OperationId operation, core::Errc code, const std::string& names);
  /// The number of completions that finish() has not taken, after a poll.
  std::size_t untaken();

 private:
  void keep(std::vector<Completion>&& completions);
  std::shared_ptr<CompletionQueue> queue_;
  std::unique_ptr<Endpoint> endpoint_;
  std::map<OperationId, Completion> finished_;
};

struct Pair {
  Peer b_at_a{};
  Peer a_at_b{};
};
/// Connects both parties to each other and waits until both connections are established.
Pair join(Party& a, Party& b);

class EndpointContract : public ::testing::TestWithParam<EndpointKind> {
 protected:
  EndpointContract();
  Party& party(const std::string& name, Credit credit = {});
  Party& party(const std::string& name, const core::Clock& clock);

  [[nodiscard]] static MemoryView view(MemoryView host);
  [[nodiscard]] static MemoryView view(Bytes& bytes) { return view(testing::view(bytes)); }
  [[nodiscard]] static ConstMemoryView view(const Bytes& bytes);
  /// Sends one message from a to b and checks it.
  static void exchange(Party& a, Peer b_at_a, Party& b, Peer a_at_b, Tag with);

  core::SteadyClock clock_;

 private:
  EndpointOptions common_;
  std::deque<Party> parties_;
};

}  // namespace troupe::transport::testing
