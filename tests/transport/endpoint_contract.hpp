/// The one contract test suite of transport/endpoint.hpp: endpoint_*_test.cpp and mapped_memory_test.cpp run over every
/// EndpointKind. A new endpoint adds one line to endpoint_contract.cpp.
///
/// Tests wait for completions with a deadline far away and never sleep. What must *not* happen they prove by making
/// something happen after it.
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
  std::function<EndpointOptions()> meeting_place;  // once per test: what its endpoints have in common
  std::string variant{};                           // tells two kinds of one name apart
  bool on_device = false;                          // the tests' memory is a FakeDevice's
  std::function<core::Result<std::unique_ptr<Endpoint>>(const EndpointOptions&)> make{};  // empty: make_endpoint
};
void PrintTo(const EndpointKind& kind, std::ostream* out);  // GoogleTest's name, found by it
[[nodiscard]] std::vector<EndpointKind> endpoint_kinds();
[[nodiscard]] std::string kind_name(const ::testing::TestParamInfo<EndpointKind>& info);

using Bytes = std::vector<std::byte>;
[[nodiscard]] Bytes pattern(std::size_t size, unsigned seed);  // any two seeds differ in every byte but by chance
/// Of host memory. In an EndpointContract's own tests view() is of the kind of memory that is tested.
[[nodiscard]] MemoryView view(Bytes& bytes);
[[nodiscard]] ConstMemoryView view(const Bytes& bytes);
[[nodiscard]] Tag tag(std::uint32_t exchange);

/// One member: an endpoint with its own queue. One thread, but for what the endpoint itself allows.
class Party {
 public:
  Party(const EndpointKind& kind, EndpointOptions options, const core::Clock& clock);

  Endpoint* operator->() const { return endpoint_.get(); }
  Endpoint& operator*() const { return *endpoint_; }
  [[nodiscard]] CompletionQueue& queue() const { return *queue_; }
  void destroy() { endpoint_.reset(); }

  /// Started, or a test failure.
  OperationId send(Peer peer, Tag tag, ConstMemoryView memory);
  OperationId receive(Peer peer, Tag tag, MemoryView memory);
  /// Whether there was credit.
  bool try_send(Peer peer, Tag tag, ConstMemoryView memory, OperationId* started = nullptr);

  /// The completion of `operation`, waited for; each may be taken once.
  Completion finish(OperationId operation);
  void expect_done(OperationId operation, std::size_t bytes);
  void expect_cancelled(OperationId operation);
  /// Failed with `code` and a message that contains `names`.
  void expect_failed(OperationId operation, core::Errc code, const std::string& names);
  /// Completions nobody has taken, after a poll.
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
/// Both connect, and both know it.
Pair join(Party& a, Party& b);

class EndpointContract : public ::testing::TestWithParam<EndpointKind> {
 protected:
  EndpointContract();
  Party& party(const std::string& name, Credit credit = {});
  Party& party(const std::string& name, const core::Clock& clock);

  [[nodiscard]] static MemoryView view(MemoryView host);
  [[nodiscard]] static MemoryView view(Bytes& bytes) { return view(testing::view(bytes)); }
  [[nodiscard]] static ConstMemoryView view(const Bytes& bytes);
  /// One message from a to b, checked.
  static void exchange(Party& a, Peer b_at_a, Party& b, Peer a_at_b, Tag with);

  core::SteadyClock clock_;

 private:
  EndpointOptions common_;
  std::deque<Party> parties_;
};

}  // namespace troupe::transport::testing
