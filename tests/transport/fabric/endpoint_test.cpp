// What ucx and mpi guarantee beyond the contract: pending connections are refused, a killed process is a lost peer, wrong options are
// errors. Skipped where a module was not built.
#include "transport/fabric/endpoint.hpp"

#include <algorithm>
#include <chrono>

#include "tests/transport/child.hpp"
#include "tests/transport/endpoint_contract.hpp"
#include "transport/common/module.hpp"
#include "transport/fabric/fabric_module.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::transport::testing {
namespace {

const EndpointKind kUcx{"ucx", [] { return EndpointOptions{.ucx_transports = "tcp,self"}; }};

class ModuleEndpoint : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::ranges::count(endpoint_kinds(), std::string(GetParam()), &EndpointKind::name) == 0)
      GTEST_SKIP() << "this build has no endpoint " << GetParam() << ", or a sanitizer";
  }
  Party party(const std::string& name, const std::string& secret) {
    const EndpointKind kind{GetParam(), {}};
    return {kind, {.name = name, .secret = secret, .ucx_transports = "tcp,self"}, clock_};
  }
  core::SteadyClock clock_;
};
INSTANTIATE_TEST_SUITE_P(Modules, ModuleEndpoint, ::testing::Values("ucx", "mpi"));

TEST_P(ModuleEndpoint, AnotherRunsSecretIsRefused) {
  for (const std::string& other : {std::string("run 2"), std::string{}, std::string("run 1, longer")}) {
    Party a = party("a", "run 1"), b = party("b", other);
    const Connection at_a = a->connect(b->address()).value();
    const OperationId sending = a.send(at_a.peer, tag(1), ConstMemoryView{});
    const Connection at_b = b->connect(a->address()).value();
    a.expect_failed(at_a.established, core::Errc::peer_lost, "secret");
    a.expect_failed(sending, core::Errc::peer_lost, "secret");
    b.expect_failed(at_b.established, core::Errc::peer_lost, "secret");
  }
}

TEST_P(ModuleEndpoint, MoreThanTheCreditIsALoss) {
  const EndpointKind kind{GetParam(), {}};
  Party a(kind, {.name = "a", .credit = {.messages = 5}, .ucx_transports = "tcp,self"}, clock_);
  Party b(kind, {.name = "b", .credit = {.messages = 2}, .ucx_transports = "tcp,self"}, clock_);
  const Connection at_a = a->connect(b->address()).value(), at_b = b->connect(a->address()).value();
  a.expect_done(at_a.established, 0);
  b.expect_done(at_b.established, 0);
  const OperationId sentinel = b.receive(at_b.peer, tag(9), MemoryView{});
  for (std::uint32_t i = 0; i < 3; ++i) (void)a->send(at_a.peer, tag(i), ConstMemoryView{});
  b.expect_failed(sentinel, core::Errc::peer_lost, "credit");
}

/// Connects two processes; the child waits in its receive.
void wait_for_ever(Line& line) {
  const core::SteadyClock clock;
  Party child(kUcx, {.name = "child", .ucx_transports = "tcp,self"}, clock);
  line.say(child->address().text);
  const Connection connection = child->connect({line.hear()}).value();
  (void)child.finish(connection.established);
  Bytes received(1 << 20);
  (void)child.finish(child.receive(connection.peer, tag(1), view(received)));
  line.say("received");
  (void)child.finish(child.receive(connection.peer, tag(3), MemoryView{}));
}

TEST(UcxProcess, AKilledPeerIsLostAndNamed) {
  if (!find_module("ucx")) GTEST_SKIP() << "this build has no endpoint ucx";
  Child process(wait_for_ever);
  const core::SteadyClock clock;
  Party self(kUcx, {.name = "parent", .ucx_transports = "tcp,self"}, clock);
  const Connection connection = self->connect({process.line().hear()}).value();
  process.line().say(self->address().text);
  self.expect_done(connection.established, 0);
  const Bytes sent = pattern(1 << 20, 1);
  self.expect_done(self.send(connection.peer, tag(1), view(sent)), sent.size());
  EXPECT_EQ(process.line().hear(), "received");
  const OperationId unheard = self.send(connection.peer, tag(2), view(sent));
  const OperationId receiving = self.receive(connection.peer, tag(2), MemoryView{});
  process.kill();
  self.expect_failed(receiving, core::Errc::peer_lost, "/child");
  self.expect_failed(unheard, core::Errc::peer_lost, "/child");
  EXPECT_EQ(self->send(connection.peer, tag(2), view(sent)).error().code, core::Errc::peer_lost);
}

TEST(UcxProcess, AProcessKilledWhileDataMovesGivesTheMemoryBack) {
  if (!find_module("ucx")) GTEST_SKIP() << "this build has no endpoint ucx";
  for (int round = 0; round < 3; ++round) {
    Child process([](Line& line) {
      const core::SteadyClock clock;
      Party child(kUcx, {.name = "child", .ucx_transports = "tcp,self"}, clock);
      line.say(child->address().text);
      const Connection connection = child->connect({line.hear()}).value();
      (void)child.finish(connection.established);
      for (std::uint32_t i = 0;; ++i) {
        Bytes received(1 << 20);
        if (child.finish(child.receive(connection.peer, tag(i), view(received))).outcome != Outcome::done) return;
        if (i == 2) line.say("in full swing");
      }
    });
    const core::SteadyClock clock;
    Party self(kUcx, {.name = "parent", .ucx_transports = "tcp,self"}, clock);
    const Connection connection = self->connect({process.line().hear()}).value();
    process.line().say(self->address().text);
    self.expect_done(connection.established, 0);
    Bytes sent = pattern(1 << 20, 1);
    std::vector<OperationId> sending;
    for (std::uint32_t i = 0; i < 40; ++i) sending.push_back(self.send(connection.peer, tag(i), view(sent)));
    EXPECT_EQ(process.line().hear(), "in full swing");
    process.kill();
    for (const OperationId operation : sending) (void)self.finish(operation);
    EXPECT_EQ(self.untaken(), 0u);
    sent.assign(sent.size(), std::byte{0});
  }
}

TEST(UcxModule, UnknownTransportsAreAConfigurationError) {
  if (!find_module("ucx")) GTEST_SKIP() << "this build has no endpoint ucx";
  const core::SteadyClock clock;
  const auto endpoint =
      make_endpoint("ucx", {.completions = CompletionQueue::create(clock).value(), .ucx_transports = "carrier_pigeon"});
  ASSERT_FALSE(endpoint);
  EXPECT_EQ(endpoint.error().code, core::Errc::config);
  EXPECT_NE(endpoint.error().message.find("carrier_pigeon"), std::string::npos) << endpoint.error().message;
}

TEST(Module, MissingModuleIsAConfigErrorThatNamesPackages) {
  EXPECT_FALSE(find_module("telepathy"));
  EndpointRegistry registry;
  add_module(registry, {.name = "telepathy", .library = {.title = "Telepathy", .packages = "libtelepathy-dev"}});
  const core::SteadyClock clock;
  const EndpointOptions options{.completions = CompletionQueue::create(clock).value()};
  const auto endpoint = registry.make("telepathy", options);
  ASSERT_FALSE(endpoint);
  EXPECT_EQ(endpoint.error().code, core::Errc::config);
  EXPECT_NE(endpoint.error().message.find("libtelepathy-dev"), std::string::npos) << endpoint.error().message;
  EXPECT_EQ(make_module_endpoint("telepathy", Symbols::local, options).error().code, core::Errc::config);
}

}  // namespace
}  // namespace troupe::transport::testing
