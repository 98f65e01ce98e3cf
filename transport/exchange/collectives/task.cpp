#include "transport/exchange/collectives/task.hpp"

#include <algorithm>
#include <utility>

namespace troupe::exchange {

using core::Slice;
using transport::Completion;
using transport::Outcome;

Slice chunk_of(const Slice& slice, std::size_t index, std::size_t chunk_floats) {
  const std::size_t begin = std::min(index * chunk_floats, slice.count);
  return {slice.offset + begin, std::min(chunk_floats, slice.count - begin)};
}

std::size_t chunks_of(const Slice& slice, std::size_t chunk_floats) {
  return (slice.count + chunk_floats - 1) / chunk_floats;
}

std::size_t chunk_floats(std::size_t wanted, std::size_t floats, std::size_t ranks) {
  constexpr std::size_t kMostChunks = 65535;                                    // TagFields::chunk
  const std::size_t per_slice = kMostChunks / std::max<std::size_t>(ranks, 1);  // the ring counts its steps in it too
  return std::max(wanted, core::align_floats(floats / per_slice + 1));
}

Task::Task(OperationQueue& operations, const core::Kernels& kernels, Group group, CollectiveTask task, Done done)
    : operations_(operations),
      kernels_(kernels),
      group_(std::move(group)),
      task_(std::move(task)),
      done_(std::move(done)) {}

void Task::start() {
  begin();
  beginning_ = false;
  settle();
}

std::vector<std::size_t> Task::others() const {
  std::vector<std::size_t> others;
  for (std::size_t step = 1; step < ranks(); ++step) others.push_back((rank() + step) % ranks());
  return others;
}

transport::Tag Task::tag(Kind kind, std::size_t chunk) const {
  auto tag = task_.tag;
  tag.kind = kind;
  tag.chunk = static_cast<std::uint16_t>(chunk);
  return make_tag(tag);
}

void Task::send(std::size_t rank, Kind kind, std::size_t chunk, transport::ConstMemoryView memory, Then then) {
  if (error_) return;
  tickets_.insert(operations_.send(group_.peers[rank], tag(kind, chunk), memory, continuation(std::move(then))));
}

void Task::receive(std::size_t rank, Kind kind, std::size_t chunk, transport::MemoryView memory, Then then) {
  if (error_) return;
  if (!heard_.contains(rank)) awaited_.insert(rank);
  auto next = continuation([this, rank, then = std::move(then)] {
    hear(rank);
    then();
  });
  tickets_.insert(operations_.receive(group_.peers[rank], tag(kind, chunk), memory, std::move(next)));
}

void Task::hear(std::size_t rank) {
  if (last_ || !heard_.insert(rank).second) return;
  awaited_.erase(rank);
  if (awaited_.empty()) last_ = rank;
}

void Task::sum(core::Span vector, Then then) {
  if (error_) return;
  tickets_.insert(operations_.sum(vector, continuation(std::move(then))));
}

OperationQueue::Done Task::continuation(Then then) {
  return [this, then = std::move(then)](OperationQueue::Ticket ticket, const Completion& completion) {
    tickets_.erase(ticket);
    if (completion.outcome == Outcome::failed) fail(lost_by(completion));
    if (completion.outcome == Outcome::cancelled) fail({core::Errc::interrupted, "the exchange was given up"});
    if (!error_) then();
    settle();
  };
}

/// After a damaged message, or one of another length, no member can reduce with the sender any more.
core::Error Task::lost_by(const Completion& completion) {
  if (completion.error.code != core::Errc::corrupt) return completion.error;
  operations_.give_up(completion.peer, completion.error.message);
  return {core::Errc::peer_lost, completion.error.message};
}

void Task::fail(core::Error error) {
  if (error_ || !done_) return;
  error_ = std::move(error);
  for (const auto ticket : tickets_) operations_.cancel(ticket);
}

void Task::take_scratch(std::size_t bytes) {
  Scratch own;  // its pieces may outlive it
  scratch_ = (task_.scratch ? task_.scratch : &own)->take(bytes);
}

void Task::settle() {
  if (beginning_ || !tickets_.empty() || !done_) return;
  scratch_ = {};
  const auto done = std::exchange(done_, nullptr);
  done(error_ ? core::Result<void>(tl::unexpected(*std::move(error_))) : core::Result<void>());  // may delete *this
}

}  // namespace troupe::exchange
