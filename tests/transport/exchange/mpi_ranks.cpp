// Run by mpirun: the main points of the contract and every collective between processes, against serial sums.
// No GoogleTest: a rank that finds a fault prints it and exits, and mpirun ends the other ranks.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/buffer.hpp"
#include "core/clock.hpp"
#include "core/random.hpp"
#include "tests/transport/device/fake_device.hpp"
#include "tests/transport/fabric/taking_fabric.hpp"
#include "tests/transport/repeated_memory.hpp"
#include "transport/exchange/collectives/collective.hpp"
#include "transport/native_reduction.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::exchange {
namespace {

using transport::Completion;
using transport::OperationId;
using transport::Outcome;
using transport::Peer;

constexpr core::Duration kPatience = std::chrono::seconds{120};  // only a hang takes so long

std::string self = "a rank";

void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "%s: %s\n", self.c_str(), what.c_str());
  ::_exit(1);  // not through MPI_Finalize, which would wait for the others
}

class Rank {
 public:
  /// All ranks make as many endpoints, in the same order, before they meet(): an endpoint that does not exist yet is a lost peer.
  explicit Rank(std::size_t piece = transport::EndpointOptions{}.mpi_piece) {
    take(transport::make_endpoint("mpi", options(piece)));
  }
  /// Between hosts, with a library that takes the memory of `device`.
  explicit Rank(const std::shared_ptr<transport::testing::FakeDevice>& device) {
    auto given = options(transport::EndpointOptions{}.mpi_piece);
    given.check_within_host = true;
    given.device = device;
    given.checksum = std::make_shared<transport::testing::FakeChecksum>();
    take(transport::testing::make_taking_endpoint("mpi", given, straight_));
  }
  /// Transfers in device memory.
  [[nodiscard]] unsigned straight() const { return *straight_; }

 private:
  [[nodiscard]] transport::EndpointOptions options(std::size_t piece) const {
    return {.name = "member",
            .completions = transport::CompletionQueue::create(clock_).value(),
            .credit = {.messages = 8, .bytes = 1 << 20},
            .secret = "run",
            .mpi_piece = piece};
  }
  void take(core::Result<std::unique_ptr<transport::Endpoint>> made) {
    require(made.has_value(), made ? "" : made.error().message);
    endpoint_ = std::move(*made);
    operations_ = std::make_unique<OperationQueue>(*endpoint_);
  }

 public:
  /// `ranks`: 0 where the endpoint knows.
  void meet(std::size_t ranks = 0) {
    // "mpi:<job>.<rank>.<slot>/member": addresses of other members differ in the rank.
    const std::string& mine = endpoint_->address().text;
    const auto before = mine.find('.') + 1, after = mine.find('.', before);
    group_.rank = std::stoul(mine.substr(before, after - before));
    self = fmt::format("rank {}", group_.rank);
    if (ranks == 0) ranks = endpoint_->native_reduction()->members();
    for (std::size_t r = 0; r < ranks; ++r) {
      if (r == group_.rank) {
        group_.peers.push_back({});
        continue;
      }
      const auto connection = endpoint_->connect({mine.substr(0, before) + std::to_string(r) + mine.substr(after)});
      require(connection.has_value(), connection ? "" : connection.error().message);
      group_.peers.push_back(connection->peer);
      done(connection->established);
    }
  }

  [[nodiscard]] const Group& group() const { return group_; }
  [[nodiscard]] transport::Endpoint& endpoint() { return *endpoint_; }

  Completion finish(OperationId operation) {
    drive([&] { return others_.contains(operation); });
    return std::move(others_.extract(operation).mapped());
  }
  void done(OperationId operation) {
    const auto completion = finish(operation);
    require(completion.outcome == Outcome::done, completion.error.message);
  }

  void reduce(CollectiveTask task, const Group& group) {
    std::optional<core::Result<void>> ended;
    const auto collective = make_collective(*operations_, core::host_kernels(), group, std::move(task),
                                            [&](auto result) { ended = result; });
    collective->start();
    operations_->flush();
    drive([&] { return ended.has_value(); });
    require(ended->has_value(), ended->has_value() ? "" : ended->error().message);
  }

 private:
  void drive(const std::function<bool()>& until) {
    const auto deadline = transport::after(clock_, kPatience);
    while (!until()) {
      std::vector<Completion> completions;
      require(endpoint_->completions().wait(completions, deadline).has_value(), "hangs");
      for (auto& completion : completions)
        if (!operations_->deliver(completion)) others_.emplace(completion.operation, std::move(completion));
      operations_->flush();
    }
  }

  core::SteadyClock clock_;
  std::shared_ptr<std::atomic<unsigned>> straight_ = std::make_shared<std::atomic<unsigned>>(0);
  std::unique_ptr<transport::Endpoint> endpoint_;
  std::unique_ptr<OperationQueue> operations_;
  Group group_;
  std::map<OperationId, Completion> others_;
};

transport::Tag tag(std::uint32_t exchange) { return transport::make_tag({.run = 1, .exchange = exchange}); }

/// Every rank to every other one: lengths around the limits, two wrong lengths, a cancelled send, no credit.
void messages(Rank& rank) {
  auto& endpoint = rank.endpoint();
  const Group& group = rank.group();
  for (std::size_t other = 0; other < group.size(); ++other) {
    if (other == group.rank) continue;
    const Peer peer = group.peers[other];
    std::uint32_t exchange = 0;
    for (const std::size_t size : {0U, 1U, 4096U, 4097U, 3000001U}) {
      const std::vector<std::byte> out(size, static_cast<std::byte>(group.rank + 1));
      std::vector<std::byte> in(size);
      const auto receiving = endpoint.receive(peer, tag(exchange), {in.data(), size}).value();
      const auto sending = endpoint.send(peer, tag(exchange++), {out.data(), size}).value().value();
      rank.done(sending);
      rank.done(receiving);
      require(std::ranges::count(in, static_cast<std::byte>(other + 1)) == static_cast<std::ptrdiff_t>(size),
              fmt::format("{} bytes from rank {} are not what was sent", size, other));
    }
    const std::vector<std::byte> out(10'000);
    std::vector<std::byte> in(9'999);
    const auto receiving = endpoint.receive(peer, tag(exchange), {in.data(), in.size()}).value();
    const auto sending = endpoint.send(peer, tag(exchange++), {out.data(), out.size()}).value().value();
    require(rank.finish(sending).error.code == core::Errc::corrupt, "a wrong length was sent");
    require(rank.finish(receiving).error.code == core::Errc::corrupt, "a wrong length was received");
    std::vector<OperationId> posted;
    for (int i = 0; i < 8; ++i) posted.push_back(endpoint.send(peer, tag(exchange), {out.data(), 100}).value().value());
    require(!endpoint.send(peer, tag(exchange), {out.data(), 100}).value().has_value(),
            "more than the credit was sent");
    for (const auto operation : posted) {
      endpoint.cancel(operation);
      require(rank.finish(operation).outcome == Outcome::cancelled, "a send without a receive was not cancelled");
    }
  }
}

/// Every rank to every other one, from device memory to device memory: short messages are staged, long ones go straight, and all are whole.
void device_messages(Rank& rank, const transport::testing::FakeDevice& device) {
  using transport::testing::on_device;
  const Group& group = rank.group();
  unsigned staged = 0, straight = 0;
  for (std::size_t other = 0; other < group.size(); ++other) {
    if (other == group.rank) continue;
    std::uint32_t exchange = 600;
    for (const std::size_t size : {4096U, 4097U, 9'000'001U}) {
      const std::vector<std::byte> out(size, static_cast<std::byte>(group.rank + 1));
      std::vector<std::byte> in(size);
      const Peer peer = group.peers[other];
      const transport::ConstMemoryView from{out.data(), size};
      const auto receiving =
          rank.endpoint().receive(peer, tag(exchange), on_device(transport::MemoryView{in.data(), size})).value();
      const auto sending = rank.endpoint().send(peer, tag(exchange++), on_device(from)).value().value();
      rank.done(sending);
      rank.done(receiving);
      require(std::ranges::count(in, static_cast<std::byte>(other + 1)) == static_cast<std::ptrdiff_t>(size),
              fmt::format("{} bytes of device memory from rank {} are not what was sent", size, other));
      (size <= 4096 ? staged : straight) += 2;
    }
  }
  require(device.copies() == staged, "a long message was copied, or a short one was not");
  require(rank.straight() == straight, "not every long message went straight");
}

/// From rank 0 to rank 1: more bytes than MPI can count.
void long_message(Rank& rank) {
  if (rank.group().size() != 2) return;
  constexpr std::size_t kSize = (std::size_t{1} << 31) + 4100;
  const transport::testing::RepeatedMemory memory(kSize);
  const auto bytes = memory.first(kSize);
  const std::size_t period = memory.kPeriod;
  const auto byte = [](std::size_t i) { return static_cast<std::byte>(i / 7 % 251); };
  const Peer peer = rank.group().peers[1 - rank.group().rank];
  if (rank.group().rank == 1) {
    rank.done(rank.endpoint().receive(peer, tag(500), {bytes.data(), bytes.size()}).value());
    for (std::size_t i = 0; i < period; ++i) require(bytes[i] == byte(i), "2 GiB did not arrive whole");
    return;
  }
  for (std::size_t i = 0; i < period; ++i) bytes[i] = byte(i);
  rank.done(rank.endpoint().send(peer, tag(500), {bytes.data(), bytes.size()}).value().value());
}

void collectives(Rank& rank) {
  const std::size_t ranks = rank.group().size();
  core::HostAllocator allocator;
  std::uint32_t exchange = 1000;
  for (const std::size_t floats : {0U, 1U, 17U, 1000U, 65536U, 300001U}) {
    std::vector<std::vector<float>> parts(ranks);
    for (std::size_t r = 0; r < ranks; ++r) {
      core::Random random(5, core::Purpose::test, r);
      for (std::size_t i = 0; i < floats; ++i) parts[r].push_back(static_cast<float>(random.normal()));
    }
    auto buffer = core::Buffer::allocate(allocator, std::max<std::size_t>(floats, 1)).value();
    const auto vector = buffer.view().first(floats);
    const auto run = [&](Algorithm algorithm, float tolerance, std::optional<std::size_t> root,
                         const std::vector<std::uint32_t>& hosts) {
      std::ranges::copy(parts[rank.group().rank], vector.begin());
      Group group = rank.group();
      group.hosts = hosts;
      rank.reduce({.algorithm = algorithm,
                   .root = root,
                   .scale = 0.25f,
                   .vector = vector,
                   .tag = {.run = 1, .exchange = ++exchange},
                   .chunks = {.floats = 4096, .window = 3}},
                  group);
      for (std::size_t i = 0; i < floats; ++i) {
        float sum = parts[0][i];
        for (std::size_t r = 1; r < ranks; ++r) sum = sum + parts[r][i];
        const float wanted = root ? parts[*root][i] : sum * 0.25f;
        require(std::abs(vector[i] - wanted) <= tolerance, fmt::format("{} of {} floats: element {} is {}, not {}",
                                                                       name(algorithm), floats, i, vector[i], wanted));
      }
    };
    run(Algorithm::asa, 0, {}, {});
    run(Algorithm::asa16, 0.02f, {}, {});
    run(Algorithm::ring, 1e-5f, {}, {});
    run(Algorithm::ar, 1e-5f, {}, {});
    std::vector<std::uint32_t> hosts;
    for (std::size_t r = 0; r < ranks; ++r) hosts.push_back(static_cast<std::uint32_t>(r / 2));
    run(Algorithm::hierarchical, 1e-5f, {}, hosts);
    for (std::size_t root = 0; root < ranks; ++root) run(Algorithm::asa, 0, root, {});
  }
}

/// Returns when all ranks have reached it.
void barrier(Rank& rank) {
  std::vector<OperationId> posted;
  for (std::size_t other = 0; other < rank.group().size(); ++other) {
    if (other == rank.group().rank) continue;
    const Peer peer = rank.group().peers[other];
    posted.push_back(rank.endpoint().receive(peer, tag(3000), {}).value());
    posted.push_back(rank.endpoint().send(peer, tag(3000), {}).value().value());
  }
  for (const auto operation : posted) rank.done(operation);
}

/// Rank 0 closes; the others see its loss and no other one.
void losses(Rank& rank) {
  const Group& group = rank.group();
  auto& endpoint = rank.endpoint();
  if (group.rank == 0) {
    for (std::size_t other = 1; other < group.size(); ++other)
      rank.done(endpoint.receive(group.peers[other], tag(2000), {}).value());
    endpoint.close();
    return;
  }
  const auto sentinel = endpoint.receive(group.peers[0], tag(2001), {}).value();
  rank.done(endpoint.send(group.peers[0], tag(2000), {}).value().value());
  const auto lost = rank.finish(sentinel);
  require(lost.outcome == Outcome::failed && lost.error.code == core::Errc::peer_lost, "rank 0 was not missed");
  for (std::size_t other = 1; other < group.size(); ++other) {
    if (other == group.rank) continue;
    const auto receiving = endpoint.receive(group.peers[other], tag(2002), {}).value();
    const auto sending = endpoint.send(group.peers[other], tag(2002), {}).value().value();
    rank.done(sending);
    rank.done(receiving);
  }
}

}  // namespace
}  // namespace troupe::exchange

int main() {
  using troupe::exchange::Rank;
  const auto in_pieces = std::make_unique<Rank>(10'007);
  const auto rank = std::make_unique<Rank>();
  const auto device = std::make_shared<troupe::transport::testing::FakeDevice>();
  device->make_known();
  const auto on_devices = std::make_unique<Rank>(device);
  for (auto* each : {in_pieces.get(), rank.get()}) {
    each->meet();
    troupe::exchange::messages(*each);
    troupe::exchange::collectives(*each);
    troupe::exchange::barrier(*each);
  }
  on_devices->meet(rank->group().size());  // a staged endpoint offers no sums of MPI
  troupe::exchange::device_messages(*on_devices, *device);
  troupe::exchange::barrier(*on_devices);
  troupe::exchange::long_message(*rank);
  troupe::exchange::losses(*rank);
  if (rank->group().rank == 0) std::printf("%zu ranks: all collectives agree\n", rank->group().size());
}
