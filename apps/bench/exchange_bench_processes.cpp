#include <algorithm>
#include <chrono>
#include <cmath>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "apps/bench/exchange_bench.hpp"
#include "apps/bench/rank_processes.hpp"
#include "core/buffer.hpp"
#include "core/clock.hpp"
#include "transport/exchange/reduce.hpp"
#include "transport/mapped_memory.hpp"
#include "transport/shm/endpoint.hpp"

namespace troupe::transport {
namespace {

constexpr core::Duration kPatience = std::chrono::minutes{1};

struct Sizes {
  std::size_t ranks;
  std::size_t floats;
  int rounds;
};

/// One rank: its endpoint, its arena and the other ranks' arenas.
class Rank {
 public:
  Rank(std::size_t self, const Sizes& sizes) : self_(self), sizes_(sizes) {}

  [[nodiscard]] core::Result<void> meet(RankLine& line);
  /// Copies and exchanges; sends "ready done" in ns, twice a round.
  [[nodiscard]] core::Result<void> work(const core::Kernels& kernels, RankLine& line);

 private:
  [[nodiscard]] core::Result<void> finish(std::vector<OperationId>& operations);
  [[nodiscard]] core::Result<void> signal();
  template <class Body>
  [[nodiscard]] core::Result<void> timed(RankLine& line, Body body);

  const std::size_t self_;
  const Sizes sizes_;
  const core::SteadyClock clock_{};  // one clock for all processes of the host
  std::unique_ptr<Endpoint> endpoint_;
  std::shared_ptr<core::Buffer> arena_;
  std::vector<Peer> peers_;
  std::vector<Mapping> mappings_;
  std::vector<Exposure> exposures_;
  std::vector<core::Span> views_;
  std::uint32_t signals_ = 0;
};

core::Result<void> Rank::finish(std::vector<OperationId>& operations) {
  const Deadline deadline = after(clock_, kPatience);
  std::vector<Completion> completions;
  while (!operations.empty()) {
    completions.clear();
    if (auto waited = endpoint_->completions().wait(completions, deadline); !waited) return waited;
    for (const Completion& c : completions) {
      if (c.outcome != Outcome::done) return tl::unexpected(c.error);
      std::erase(operations, c.operation);
    }
  }
  return {};
}

/// Signals all other ranks, and waits for all their signals.
core::Result<void> Rank::signal() {
  const Tag tag = make_tag({.run = 1, .exchange = signals_++, .kind = TagKind::signal});
  std::vector<OperationId> operations;
  for (const Peer peer : peers_) {
    const auto receiving = endpoint_->receive(peer, tag, MemoryView{});
    if (!receiving) return tl::unexpected(receiving.error());
    operations.push_back(*receiving);
  }
  for (const Peer peer : peers_) {
    const auto sending = endpoint_->send(peer, tag, ConstMemoryView{});
    if (!sending) return tl::unexpected(sending.error());
    if (!*sending) return core::fail(core::Errc::internal, "no credit for a signal");
    operations.push_back(**sending);
  }
  return finish(operations);
}

core::Result<void> Rank::meet(RankLine& line) {
  auto queue = CompletionQueue::create(clock_);
  if (!queue) return tl::unexpected(queue.error());
  auto endpoint = make_shm_endpoint({.name = fmt::format("rank {}", self_), .completions = std::move(*queue)});
  if (!endpoint) return tl::unexpected(endpoint.error());
  endpoint_ = std::move(*endpoint);
  MappedMemory& memory = *endpoint_->mapped_memory();
  auto arena = core::Buffer::allocate(memory.allocator(), core::align_floats(sizes_.floats));
  if (!arena) return tl::unexpected(arena.error());
  arena_ = std::make_shared<core::Buffer>(std::move(*arena));
  auto exposure = memory.expose(arena_);
  if (!exposure) return tl::unexpected(exposure.error());
  if (auto said = line.say(endpoint_->address().text); !said) return said;
  if (auto said = line.say(exposure->key().text); !said) return said;
  exposures_.push_back(std::move(*exposure));

  std::vector<OperationId> operations;
  for (std::size_t rank = 0; rank < sizes_.ranks; ++rank) {
    const auto address = line.receive(kPatience);
    if (!address) return tl::unexpected(address.error());
    if (rank == self_) continue;
    const auto connection = endpoint_->connect({*address});
    if (!connection) return tl::unexpected(connection.error());
    peers_.push_back(connection->peer);
    operations.push_back(connection->established);
  }
  for (std::size_t rank = 0; rank < sizes_.ranks; ++rank) {
    const auto key = line.receive(kPatience);
    if (!key) return tl::unexpected(key.error());
    if (rank == self_) {
      views_.push_back(arena_->view().first(sizes_.floats));
      continue;
    }
    auto mapping = memory.attach({*key}, arena_->size());
    if (!mapping) return tl::unexpected(mapping.error());
    mappings_.push_back(std::move(*mapping));
    views_.push_back(mappings_.back().view().first(sizes_.floats));
  }
  return finish(operations);
}

template <class Body>
core::Result<void> Rank::timed(RankLine& line, Body body) {
  const core::Duration ready = clock_.now();
  if (auto signalled = signal(); !signalled) return signalled;
  body();
  if (auto signalled = signal(); !signalled) return signalled;
  return line.say(fmt::format("{} {}", ready.count(), clock_.now().count()));
}

core::Result<void> Rank::work(const core::Kernels& kernels, RankLine& line) {
  if (auto met = meet(line); !met) return met;
  core::HostAllocator allocator;
  auto copy = core::Buffer::allocate(allocator, core::align_floats(sizes_.floats));
  if (!copy) return tl::unexpected(copy.error());
  const core::Span to = copy->view().first(sizes_.floats);
  const auto ranks = static_cast<float>(sizes_.ranks);
  const float mean = (ranks + 1) / 2;
  kernels.fill(views_[self_], static_cast<float>(self_ + 1));
  for (int round = 0; round <= sizes_.rounds; ++round) {
    if (auto done = timed(line, [&] { kernels.copy(to, views_[self_]); }); !done) return done;
    if (auto done = timed(line, [&] { exchange::reduce_slice(kernels, views_, self_, 1 / ranks); }); !done) return done;
    for (const float value : {views_[self_].front(), views_[self_][sizes_.floats / 2], views_[self_].back()})
      if (std::abs(value - mean) > 1e-3F * mean)
        return core::fail(core::Errc::internal, "the exchange computed a wrong mean");
  }
  (void)line.receive(kPatience);  // no rank ends before all are done
  return {};
}

/// From the time the last rank was ready until the last rank continued.
core::Result<double> span_ms(const std::vector<std::string>& lines) {
  std::int64_t last_ready = 0;
  std::int64_t last_done = 0;
  for (const std::string& text : lines) {
    std::istringstream in(text);
    std::int64_t ready = 0;
    std::int64_t done = 0;
    if (!(in >> ready >> done)) return core::fail(core::Errc::internal, "a rank said something else than its times");
    last_ready = std::max(last_ready, ready);
    last_done = std::max(last_done, done);
  }
  return static_cast<double>(last_done - last_ready) * 1e-6;
}

double median(std::vector<double>& values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

}  // namespace

core::Result<ExchangeBench> run_process_exchange_bench(const core::Kernels& kernels, int ranks, std::size_t floats,
                                                       int rounds) {
  const Sizes sizes{static_cast<std::size_t>(ranks), floats, rounds};
  RankProcesses processes;
  const auto started = processes.start(
      sizes.ranks, [&](std::size_t self, RankLine& line) { return Rank(self, sizes).work(kernels, line); });
  if (!started) return tl::unexpected(started.error());
  for (int step = 0; step < 2; ++step) {  // first addresses, then arena keys
    const auto lines = processes.gather(kPatience);
    if (!lines) return tl::unexpected(lines.error());
    if (auto spread = processes.spread(*lines); !spread) return tl::unexpected(spread.error());
  }
  std::vector<double> copies;
  std::vector<double> exchanges;
  for (int round = 0; round <= rounds; ++round) {
    for (auto* times : {&copies, &exchanges}) {
      const auto lines = processes.gather(kPatience);
      if (!lines) return tl::unexpected(lines.error());
      const auto ms = span_ms(*lines);
      if (!ms) return tl::unexpected(ms.error());
      if (round > 0) times->push_back(*ms);  // the first round warms up
    }
  }
  const double ms = median(exchanges);
  const double bytes = 2.0 * sizeof(float) * static_cast<double>(floats) * ranks;
  return ExchangeBench{.ms = ms, .gb_per_s = bytes / ms / 1e6, .memcpy_ms = median(copies)};
}

}  // namespace troupe::transport
