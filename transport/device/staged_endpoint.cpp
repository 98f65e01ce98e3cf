#include "transport/device/staged_endpoint.hpp"

#include <stdexcept>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

const core::SteadyClock kClock;

Capabilities with_device(Capabilities inner) {
  inner.spaces.push_back(core::MemorySpace::device);
  inner.ordering = Ordering::per_tag;  // an unstaged message may overtake a copy to the device
  return inner;
}

}  // namespace

StagedEndpoint::StagedEndpoint(std::unique_ptr<Endpoint> inner, std::shared_ptr<CompletionQueue> inner_completions,
                               const EndpointOptions& options)
    : copier_(options.device),
      completions_(options.completions),
      inner_completions_(std::move(inner_completions)),
      inner_(std::move(inner)),
      credit_(options.credit),
      capabilities_(with_device(inner_->capabilities())),
      stop_(inner_completions_->next_operation()),
      pool_(copier_->pinned(), options.staging_bytes),
      thread_([this] { pass_on(); }) {}

void StagedEndpoint::pass_on() {
  for (;;) {
    std::vector<Completion> ended;
    if (!inner_completions_->wait(ended, {core::Duration::max()})) continue;
    const std::lock_guard lock(mutex_);
    for (Completion& completion : ended) {
      if (completion.operation == stop_) return;  // the last completion
      advance(std::move(completion));
    }
  }
}

void StagedEndpoint::check(core::MemorySpace space, std::size_t bytes) const {
  if (!capabilities_.takes(space))
    throw std::invalid_argument(
        fmt::format("{}: cannot reach this memory space; ask capabilities()", capabilities_.name));
  if (bytes > capabilities_.max_message_bytes)
    throw std::invalid_argument(fmt::format("{}: message too long; ask capabilities()", capabilities_.name));
}

core::Result<void> StagedEndpoint::open() const {
  if (closed_)
    return core::fail(core::Errc::usage, fmt::format("{} is closed and cannot transfer", inner_->address().text));
  return {};
}

OperationId StagedEndpoint::expect(OperationId outer) {
  const OperationId number = inner_completions_->next_operation();
  outer_.emplace(number, outer);
  return number;
}

DeviceCopier::Done StagedEndpoint::when_copied(OperationId operation) {
  return [queue = inner_completions_, number = expect(operation)](core::Result<void> copied) {
    Completion ended{.operation = number};
    if (!copied) {
      ended.outcome = Outcome::failed;
      ended.error = copied.error();
    }
    queue->push(std::move(ended));
  };
}

core::Result<Connection> StagedEndpoint::connect(const Address& remote) {
  const std::lock_guard lock(mutex_);
  auto connection = inner_->connect(remote);
  if (!connection) return connection;
  const OperationId outer = completions_->next_operation();
  outer_.emplace(connection->established, outer);
  accounts_[connection->peer];
  operations_.emplace(outer, Operation{.kind = Operation::Kind::connect,
                                       .phase = Operation::Phase::posted,
                                       .peer = connection->peer,
                                       .inner = connection->established});
  connection->established = outer;
  return connection;
}

core::Result<std::optional<OperationId>> StagedEndpoint::send(Peer peer, Tag tag, ConstMemoryView memory) {
  check(memory.space, memory.size);
  const std::lock_guard lock(mutex_);
  Account& account = accounts_.at(peer);
  if (const auto ready = open(); !ready) return tl::unexpected(ready.error());
  // A message larger than the window is sent alone.
  const bool fits =
      account.bytes == 0 || (account.bytes <= credit_.bytes && memory.size <= credit_.bytes - account.bytes);
  if (account.messages >= credit_.messages || !fits) return std::nullopt;
  Operation sending{.kind = Operation::Kind::send,
                    .phase = Operation::Phase::queued,
                    .peer = peer,
                    .tag = tag,
                    .memory = memory,
                    .bytes = memory.size};
  const std::byte* const device = memory.space == core::MemorySpace::device ? memory.data : nullptr;
  const bool direct = device && is_direct(peer, memory.size);
  if (device && memory.size > 0 && !direct) {
    auto block = pool_.take(memory.size);
    if (!block) return tl::unexpected(block.error());
    sending.block = std::move(*block);
    sending.memory = {sending.block.get(), memory.size, core::MemorySpace::host_pinned};
    sending.phase = Operation::Phase::copying;
  } else if (memory.space == core::MemorySpace::device && !direct) {
    sending.memory = {};
  }
  const OperationId outer = completions_->next_operation();
  auto& queue = queues_[{peer, tag}];
  if (queue.empty() && sending.phase == Operation::Phase::queued) {  // no predecessor: a lost peer is refused at once
    queues_.erase({peer, tag});
    const auto posted = inner_->send(peer, tag, sending.memory);
    if (!posted || !*posted) return posted;
    sending.phase = Operation::Phase::posted;
    sending.inner = **posted;
    outer_.emplace(sending.inner, outer);
  } else {
    queue.push_back(outer);
  }
  account.messages += 1;
  account.bytes += memory.size;
  const Operation& begun = operations_.emplace(outer, std::move(sending)).first->second;
  if (begun.phase == Operation::Phase::copying)
    copier_->to_host(begun.block.get(), device, memory.size, when_copied(outer));
  return outer;
}

core::Result<OperationId> StagedEndpoint::receive(Peer peer, Tag tag, MemoryView memory) {
  check(memory.space, memory.size);
  const std::lock_guard lock(mutex_);
  (void)accounts_.at(peer);
  if (const auto ready = open(); !ready) return tl::unexpected(ready.error());
  Operation receiving{.kind = Operation::Kind::receive,
                      .phase = Operation::Phase::posted,
                      .peer = peer,
                      .tag = tag,
                      .bytes = memory.size};
  if (memory.space == core::MemorySpace::device && !is_direct(peer, memory.size)) {
    receiving.device = memory.data;
    memory = {};
    if (receiving.bytes > 0) {
      auto block = pool_.take(receiving.bytes);
      if (!block) return tl::unexpected(block.error());
      receiving.block = std::move(*block);
      memory = {receiving.block.get(), receiving.bytes, core::MemorySpace::host_pinned};
    }
  }
  const auto posted = inner_->receive(peer, tag, memory);
  if (!posted) return posted;
  const OperationId outer = completions_->next_operation();
  receiving.inner = *posted;
  outer_.emplace(*posted, outer);
  operations_.emplace(outer, std::move(receiving));
  return outer;
}

void StagedEndpoint::advance(Completion ended) {
  const auto number = outer_.extract(ended.operation);
  if (number.empty()) return;
  const auto operation = operations_.find(number.mapped());
  const Peer peer = operation->second.peer;
  switch (operation->second.phase) {
    case Operation::Phase::copying: return copied(operation, std::move(ended));
    case Operation::Phase::landing:
      ended.bytes = ended.outcome == Outcome::done ? operation->second.bytes : 0;
      return finish(operation, std::move(ended));
    default: break;
  }
  if (ended.outcome == Outcome::done && operation->second.kind == Operation::Kind::receive && operation->second.block)
    return complete_copy(operation);
  const bool frees_credit = operation->second.kind == Operation::Kind::send;
  finish(operation, std::move(ended));
  if (frees_credit) post_all(peer);
}

void StagedEndpoint::copied(Operations::iterator operation, Completion ended) {
  Operation& sending = operation->second;
  const Peer peer = sending.peer;
  const Tag tag = sending.tag;
  sending.phase = Operation::Phase::queued;
  if (sending.cancelled || closed_) ended.outcome = Outcome::cancelled;
  if (ended.outcome != Outcome::done) {
    if (ended.outcome == Outcome::cancelled) ended.error = {};
    leave_queue(sending, operation->first);
    finish(operation, std::move(ended));
  }
  post(peer, tag);
}

void StagedEndpoint::complete_copy(Operations::iterator operation) {
  Operation& receiving = operation->second;
  receiving.phase = Operation::Phase::landing;
  copier_->to_device(receiving.device, receiving.block.get(), receiving.bytes, when_copied(operation->first));
}

void StagedEndpoint::post(Peer peer, Tag tag) {
  const auto queue = queues_.find({peer, tag});
  if (queue == queues_.end()) return;
  while (!queue->second.empty()) {
    const auto oldest = operations_.find(queue->second.front());
    Operation& sending = oldest->second;
    if (sending.phase != Operation::Phase::queued) return;
    const auto posted = inner_->send(peer, tag, sending.memory);
    if (posted && !*posted) return;  // retried when another send completes
    queue->second.pop_front();
    if (posted) {
      sending.phase = Operation::Phase::posted;
      sending.inner = **posted;
      outer_.emplace(sending.inner, oldest->first);
    } else {
      finish(oldest, {.outcome = Outcome::failed, .error = posted.error()});
    }
  }
  queues_.erase(queue);
}

void StagedEndpoint::post_all(Peer peer) {
  for (auto queue = queues_.lower_bound({peer, Tag{0}}); queue != queues_.end() && queue->first.first == peer;)
    post(peer, (queue++)->first.second);
}

void StagedEndpoint::leave_queue(const Operation& operation, OperationId id) {
  const auto queue = queues_.find({operation.peer, operation.tag});
  std::erase(queue->second, id);
  if (queue->second.empty()) queues_.erase(queue);
}

void StagedEndpoint::finish(Operations::iterator operation, Completion completion) {
  const auto& ended = operation->second;
  completion.operation = operation->first;
  completion.peer = ended.peer;
  if (ended.kind == Operation::Kind::send) {
    Account& account = accounts_.at(ended.peer);
    account.messages -= 1;
    account.bytes -= ended.bytes;
  }
  operations_.erase(operation);  // returns the buffer first: the receiver of the completion may need it
  completions_->push(std::move(completion));
  if (operations_.empty()) ended_.notify_all();
}

void StagedEndpoint::cancel(OperationId id) {
  const std::lock_guard lock(mutex_);
  const auto operation = operations_.find(id);
  if (operation == operations_.end()) return;
  Operation& waiting = operation->second;
  switch (waiting.phase) {
    case Operation::Phase::copying: waiting.cancelled = true; return;
    case Operation::Phase::queued: {
      const Peer peer = waiting.peer;
      const Tag tag = waiting.tag;
      leave_queue(waiting, id);
      finish(operation, {.outcome = Outcome::cancelled});
      return post(peer, tag);
    }
    case Operation::Phase::posted: return inner_->cancel(waiting.inner);
    case Operation::Phase::landing: return;
  }
}

void StagedEndpoint::close() noexcept {
  const std::lock_guard closing(closing_);  // a second caller waits for the first
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (auto operation = operations_.begin(); operation != operations_.end();) {
      const auto next = std::next(operation);
      if (operation->second.phase == Operation::Phase::queued) {
        leave_queue(operation->second, operation->first);
        finish(operation, {.outcome = Outcome::cancelled});
      }
      operation = next;
    }
  }
  inner_->close();
  {
    std::unique_lock lock(mutex_);  // a copy cannot be cancelled
    ended_.wait(lock, [this] { return operations_.empty(); });
  }
  inner_completions_->push({.operation = stop_});
  thread_.join();
}

core::Result<std::unique_ptr<Endpoint>> make_staged_endpoint(const MakeEndpoint& make, const EndpointOptions& options) {
  auto completions = CompletionQueue::create(kClock);
  if (!completions) return tl::unexpected(completions.error());
  EndpointOptions inner_options = options;
  inner_options.completions = *completions;
  auto inner = make(inner_options);
  if (!inner) return inner;
  if ((*inner)->capabilities().takes(core::MemorySpace::device)) return make(options);
  return std::make_unique<StagedEndpoint>(std::move(*inner), std::move(*completions), options);
}

}  // namespace troupe::transport
