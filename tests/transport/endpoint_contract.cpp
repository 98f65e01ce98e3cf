#include "endpoint_contract.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <utility>

#include "tests/transport/device/fake_device.hpp"
#include "tests/transport/fabric/taking_fabric.hpp"
#include "tests/transport/tcp/certificates.hpp"
#include "transport/common/module.hpp"
#include "transport/inproc/endpoint.hpp"

namespace troupe::transport::testing {
namespace {

/// Only a hang takes so long: 2 GiB took 80 s beside six compilers.
constexpr core::Duration kPatience = std::chrono::seconds{180};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace

std::vector<EndpointKind> endpoint_kinds() {
  std::vector<EndpointKind> kinds = {
      {"inproc", [] { return EndpointOptions{.hub = make_inproc_hub("test")}; }},
      {"shm", [] { return EndpointOptions{}; }, "Reading"},
      {"shm", [] { return EndpointOptions{.shm_reads_peers = false}; }, "Window"},
      {"tcp", [] { return EndpointOptions{}; }},
      {"tcp", [] { return EndpointOptions{.tcp = {.tls = good_certificate()}}; }, "Tls"},
  };
  // A pointer of a FakeDevice is none of the process: an endpoint that does not take device memory and gets one nevertheless dies.
  const auto device = [] {
    auto made = std::make_shared<FakeDevice>();
    made->make_known();
    return made;
  };
  const auto staged = [&](const std::string& name, std::function<EndpointOptions()> options) {
    kinds.push_back({.name = name,
                     .meeting_place =
                         [=] {
                           auto given = options();
                           given.device = device();
                           given.checksum = std::make_shared<FakeChecksum>();
                           return given;
                         },
                     .variant = "Staged",
                     .on_device = true});
  };
  staged("inproc", [] { return EndpointOptions{.hub = make_inproc_hub("test")}; });
  staged("shm", [] { return EndpointOptions{}; });
  staged("tcp", [] { return EndpointOptions{}; });
  const auto taking = [&](const std::string& name, bool checked) {
    kinds.push_back({.name = name,
                     .meeting_place =
                         [=] {
                           return EndpointOptions{.secret = "run",
                                                  .check_within_host = checked,
                                                  .device = device(),
                                                  .checksum = std::make_shared<FakeChecksum>()};
                         },
                     .variant = checked ? "TakingChecked" : "Taking",
                     .on_device = true,
                     .make =
                         [=](const EndpointOptions& options) {
                           return make_taking_endpoint(name, options, std::make_shared<std::atomic<unsigned>>(0));
                         }});
  };
  if (find_module("ucx")) {
    kinds.push_back({"ucx", [] { return EndpointOptions{.secret = "run"}; }});
    kinds.push_back({"ucx",
                     [] { return EndpointOptions{.secret = "run", .ucx_transports = ucx_transports_between_hosts()}; },
                     "BetweenHosts"});
    kinds.push_back({"ucx", [] { return EndpointOptions{.secret = "run", .check_within_host = true}; }, "Checked"});
    staged("ucx", [] { return EndpointOptions{.secret = "run", .check_within_host = true}; });
    for (const bool checked : {false, true}) taking("ucx", checked);
  }
  // Open MPI leaks memory from plug-ins that are unloaded when the sanitizer checks, so a suppression cannot name them.
  if (find_module("mpi") && !kSanitized) {
    kinds.push_back({"mpi", [] { return EndpointOptions{.secret = "run"}; }});
    kinds.push_back({"mpi", [] { return EndpointOptions{.secret = "run", .check_within_host = true}; }, "Checked"});
    kinds.push_back({"mpi", [] { return EndpointOptions{.secret = "run", .mpi_piece = 1000}; }, "Pieces"});
    staged("mpi", [] { return EndpointOptions{.secret = "run", .check_within_host = true}; });
    for (const bool checked : {false, true}) taking("mpi", checked);
  }
  return kinds;
}

void PrintTo(const EndpointKind& kind, std::ostream* out) { *out << kind.name << kind.variant; }

std::string kind_name(const ::testing::TestParamInfo<EndpointKind>& info) {
  return info.param.name + info.param.variant;
}

Bytes pattern(std::size_t size, unsigned seed) {
  Bytes bytes(size);
  unsigned state = seed * 2654435761u + 1;
  for (std::byte& b : bytes) {
    state = state * 1664525u + 1013904223u;
    b = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

MemoryView view(Bytes& bytes) { return {bytes.data(), bytes.size(), core::MemorySpace::host}; }
ConstMemoryView view(const Bytes& bytes) { return {bytes.data(), bytes.size()}; }
Tag tag(std::uint32_t exchange) { return make_tag({.run = 1, .exchange = exchange, .kind = TagKind::push}); }

Party::Party(const EndpointKind& kind, EndpointOptions options, const core::Clock& clock) {
  queue_ = CompletionQueue::create(clock).value();
  options.completions = queue_;
  endpoint_ = (kind.make ? kind.make(options) : make_endpoint(kind.name, options)).value();
}

bool Party::try_send(Peer peer, Tag tag, ConstMemoryView memory, OperationId* started) {
  const auto operation = endpoint_->send(peer, tag, memory);
  if (!operation) {
    ADD_FAILURE() << operation.error().message;
    return false;
  }
  if (*operation && started) *started = **operation;
  return operation->has_value();
}

OperationId Party::send(Peer peer, Tag tag, ConstMemoryView memory) {
  OperationId operation{};
  EXPECT_TRUE(try_send(peer, tag, memory, &operation)) << "no credit";
  return operation;
}

OperationId Party::receive(Peer peer, Tag tag, MemoryView memory) {
  const auto operation = endpoint_->receive(peer, tag, memory);
  if (operation) return *operation;
  ADD_FAILURE() << operation.error().message;
  return {};
}

void Party::keep(std::vector<Completion>&& completions) {
  for (Completion& c : completions) {
    const OperationId operation = c.operation;
    EXPECT_TRUE(finished_.emplace(operation, std::move(c)).second) << "completed twice";
  }
}

Completion Party::finish(OperationId operation) {
  const Deadline deadline = after(core::SteadyClock{}, kPatience);
  while (!finished_.contains(operation)) {
    std::vector<Completion> completions;
    const auto waited = queue_->wait(completions, deadline);
    if (!waited) {
      ADD_FAILURE() << waited.error().message;
      return {.operation = operation, .outcome = Outcome::failed, .error = waited.error()};
    }
    keep(std::move(completions));
  }
  return std::move(finished_.extract(operation).mapped());
}

void Party::expect_done(OperationId operation, std::size_t bytes) {
  const Completion c = finish(operation);
  EXPECT_EQ(c.outcome, Outcome::done) << c.error.message;
  EXPECT_EQ(c.bytes, bytes);
}

void Party::expect_cancelled(OperationId operation) {
  const Completion c = finish(operation);
  EXPECT_EQ(c.outcome, Outcome::cancelled) << c.error.message;
  EXPECT_EQ(c.bytes, 0u);
}

void Party::expect_failed(OperationId operation, core::Errc code, const std::string& names) {
  const Completion c = finish(operation);
  EXPECT_EQ(c.outcome, Outcome::failed);
  EXPECT_EQ(c.error.code, code);
  EXPECT_NE(c.error.message.find(names), std::string::npos) << c.error.message;
  EXPECT_EQ(c.bytes, 0u);
}

std::size_t Party::untaken() {
  std::vector<Completion> completions;
  queue_->poll(completions);
  keep(std::move(completions));
  return finished_.size();
}

EndpointContract::EndpointContract() : common_(GetParam().meeting_place()) {}

Party& EndpointContract::party(const std::string& name, Credit credit) {
  EndpointOptions options = common_;
  options.name = name;
  options.credit = credit;
  return parties_.emplace_back(GetParam(), options, clock_);
}

Party& EndpointContract::party(const std::string& name, const core::Clock& clock) {
  EndpointOptions options = common_;
  options.name = name;
  return parties_.emplace_back(GetParam(), options, clock);
}

Pair join(Party& a, Party& b) {
  const Connection at_a = a->connect(b->address()).value();
  const Connection at_b = b->connect(a->address()).value();
  a.expect_done(at_a.established, 0);
  b.expect_done(at_b.established, 0);
  return {at_a.peer, at_b.peer};
}

MemoryView EndpointContract::view(MemoryView host) { return GetParam().on_device ? on_device(host) : host; }

ConstMemoryView EndpointContract::view(const Bytes& bytes) {
  const ConstMemoryView host = testing::view(bytes);
  return GetParam().on_device ? on_device(host) : host;
}

void EndpointContract::exchange(Party& a, Peer b_at_a, Party& b, Peer a_at_b, Tag with) {
  const Bytes sent = pattern(1000, static_cast<unsigned>(fields_of(with).exchange));
  Bytes received(sent.size());
  const OperationId receiving = b.receive(a_at_b, with, view(received));
  const OperationId sending = a.send(b_at_a, with, view(sent));
  a.expect_done(sending, sent.size());
  b.expect_done(receiving, sent.size());
  EXPECT_EQ(received, sent);
}

}  // namespace troupe::transport::testing
