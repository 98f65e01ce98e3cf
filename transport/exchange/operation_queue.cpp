#include "transport/exchange/operation_queue.hpp"

#include <algorithm>
#include <utility>

#include "transport/native_reduction.hpp"

namespace troupe::exchange {

using transport::Completion;
using transport::Outcome;
using transport::Peer;
using transport::Tag;

OperationQueue::Ticket OperationQueue::send(Peer peer, Tag tag, transport::ConstMemoryView memory, Done done) {
  const Ticket ticket{next_ticket_++};
  Waiting send{ticket, tag, memory, std::move(done)};
  auto& queue = waiting_[peer];
  if (!queue.empty() || attempt(peer, send) == Attempt::no_credit) {
    queue.push_back(std::move(send));
    ++waiting_count_;
  }
  return ticket;
}

OperationQueue::Attempt OperationQueue::attempt(Peer peer, Waiting& send) {
  auto operation = endpoint_.send(peer, send.tag, send.memory);
  if (!operation) {
    end(send.ticket, peer, std::move(send.done), std::move(operation.error()));
    return Attempt::over;
  }
  if (!*operation) return Attempt::no_credit;
  operations_[send.ticket] = **operation;
  posted_.emplace(**operation, Posted{send.ticket, std::move(send.done), true});
  return Attempt::posted;
}

OperationQueue::Ticket OperationQueue::receive(Peer peer, Tag tag, transport::MemoryView memory, Done done) {
  const Ticket ticket{next_ticket_++};
  auto operation = endpoint_.receive(peer, tag, memory);
  if (!operation) {
    end(ticket, peer, std::move(done), std::move(operation.error()));
    return ticket;
  }
  operations_[ticket] = *operation;
  posted_.emplace(*operation, Posted{ticket, std::move(done), false});
  return ticket;
}

OperationQueue::Ticket OperationQueue::sum(core::Span vector, Done done) {
  const Ticket ticket{next_ticket_++};
  auto operation = native_reduction()->sum(vector);
  if (!operation) {
    end(ticket, {}, std::move(done), std::move(operation.error()));
    return ticket;
  }
  operations_[ticket] = *operation;
  posted_.emplace(*operation, Posted{ticket, std::move(done), false});
  return ticket;
}

void OperationQueue::end(Ticket ticket, Peer peer, Done done, core::Error error) {
  ended_.push_back({ticket,
                    std::move(done),
                    {.operation = {}, .peer = peer, .outcome = Outcome::failed, .error = std::move(error)}});
}

void OperationQueue::cancel(Ticket ticket) {
  if (const auto found = operations_.find(ticket); found != operations_.end()) return endpoint_.cancel(found->second);
  for (auto& [peer, queue] : waiting_) {
    const auto found = std::ranges::find(queue, ticket, &Waiting::ticket);
    if (found == queue.end()) continue;
    ended_.push_back(
        {ticket, std::move(found->done), {.operation = {}, .peer = peer, .outcome = Outcome::cancelled, .error = {}}});
    queue.erase(found);
    --waiting_count_;
    return;
  }
}

bool OperationQueue::deliver(const Completion& completion) {
  auto node = posted_.extract(completion.operation);
  if (node.empty()) return false;
  const auto posted = std::move(node.mapped());
  operations_.erase(posted.ticket);
  if (posted.is_send) retry(completion.peer);  // the send's credit is free again
  posted.done(posted.ticket, completion);
  return true;
}

void OperationQueue::retry(Peer peer) {
  auto& queue = waiting_[peer];
  while (!queue.empty() && attempt(peer, queue.front()) != Attempt::no_credit) {
    queue.pop_front();
    --waiting_count_;
  }
}

void OperationQueue::flush() {
  while (!ended_.empty()) {
    const auto ended = std::move(ended_.front());
    ended_.pop_front();
    ended.done(ended.ticket, ended.completion);
  }
}

}  // namespace troupe::exchange
