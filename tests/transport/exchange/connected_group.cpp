#include "tests/transport/exchange/connected_group.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/random.hpp"
#include "tests/transport/exchange/drive.hpp"

namespace troupe::exchange::testing {
namespace {

core::HostAllocator& allocator() {
  static core::HostAllocator allocator;
  return allocator;
}

}  // namespace

std::vector<core::Buffer> ConnectedGroup::vectors(std::size_t floats) {
  std::vector<core::Buffer> all;
  for (std::size_t r = 0; r < size(); ++r) {
    core::Allocator& memory = maps_memory() ? arenas(r) : static_cast<core::Allocator&>(allocator());
    all.push_back(core::Buffer::allocate(memory, std::max<std::size_t>(floats, 1)).value());
    core::Random random(5, core::Purpose::test, r);
    for (float& x : all.back().view()) x = static_cast<float>(random.normal());
  }
  return all;
}

ConnectedGroup::ConnectedGroup(const transport::testing::EndpointKind& kind, std::size_t ranks,
                               transport::Credit credit)
    : queue_(transport::CompletionQueue::create(clock_).value()) {
  auto options = kind.meeting_place();
  options.completions = queue_;
  options.credit = credit;
  for (std::size_t r = 0; r < ranks; ++r) {
    options.name = fmt::format("rank {}", r);
    const std::shared_ptr<transport::Endpoint> endpoint = transport::make_endpoint(kind.name, options).value();
    auto arenas = endpoint->capabilities().maps_peer_memory ? Arenas::create(endpoint) : nullptr;
    members_.push_back({endpoint, std::move(arenas), std::make_unique<OperationQueue>(*endpoint),
                        std::vector<transport::Peer>(ranks)});
  }
  for (std::size_t a = 0; a < ranks; ++a)
    for (std::size_t b = 0; b < ranks; ++b) {
      if (a == b) continue;
      const auto connection = members_[a].endpoint->connect(members_[b].endpoint->address()).value();
      members_[a].peers[b] = connection.peer;
      establishing_.push_back(connection.established);
    }
  drive([this] { return establishing_.empty(); });
}

ConnectedGroup::~ConnectedGroup() {
  for (auto& member : members_)
    if (member.endpoint) member.endpoint->close();
  poll();
}

Group ConnectedGroup::group(std::size_t rank) const { return {.rank = rank, .peers = members_[rank].peers}; }

std::uint64_t ConnectedGroup::bytes_sent(std::size_t rank) const {
  std::uint64_t bytes = 0;
  for (std::size_t other = 0; other < size(); ++other)
    if (other != rank) bytes += members_[rank].endpoint->traffic(members_[rank].peers[other]).bytes_sent;
  return bytes;
}

std::size_t ConnectedGroup::start(std::size_t rank, CollectiveTask task, std::vector<core::Buffer>& vectors) {
  return start(rank, group(rank), std::move(task), vectors);
}

std::size_t ConnectedGroup::start(std::size_t rank, Group group, CollectiveTask task,
                                  std::vector<core::Buffer>& vectors) {
  task.vector = vectors[rank].view().first(task.vector.size());
  task.arenas = members_[rank].arenas.get();
  const auto which = runs_.size();
  auto& run = runs_.emplace_back();
  run.collective = make_collective(*members_[rank].operations, core::host_kernels(), std::move(group), std::move(task),
                                   [&run](core::Result<void> result) {
                                     EXPECT_FALSE(run.ended);
                                     run.ended = std::move(result);
                                   });
  run.collective->start();
  return which;
}

void ConnectedGroup::deliver(const std::vector<transport::Completion>& completions) {
  for (const auto& completion : completions) {
    if (std::erase(establishing_, completion.operation) > 0) continue;
    EXPECT_TRUE(std::ranges::any_of(members_, [&](auto& member) { return member.operations->deliver(completion); }));
  }
  for (auto& member : members_) member.operations->flush();
}

void ConnectedGroup::poll() {
  std::vector<transport::Completion> completions;
  queue_->poll(completions);
  deliver(completions);
}

void ConnectedGroup::drive(const std::function<bool()>& done) {
  testing::drive(
      *queue_, clock_, [this](const auto& completions) { deliver(completions); }, done);
}

void ConnectedGroup::finish() {
  drive([this] { return std::ranges::all_of(runs_, [](const Run& run) { return run.ended.has_value(); }); });
}

}  // namespace troupe::exchange::testing
