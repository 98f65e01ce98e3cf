#include "transport/inproc/hub.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

std::size_t index(Peer peer) noexcept { return static_cast<std::size_t>(peer); }

/// A message above the credit's bytes is accepted only when no other payload is outstanding.
bool has_credit(const InprocHub::Direction& direction, const Credit& credit, std::size_t bytes) noexcept {
  if (direction.messages >= credit.messages) return false;
  return direction.bytes == 0 || (direction.bytes <= credit.bytes && bytes <= credit.bytes - direction.bytes);
}

}  // namespace

// The process id makes an address from another process match no member here.
InprocHub::InprocHub(std::string name) : prefix_(fmt::format("inproc:{}.{}", ::getpid(), name)) {}

std::shared_ptr<InprocHub::Member> InprocHub::join(const std::string& name,
                                                   std::shared_ptr<CompletionQueue> completions, Credit credit) {
  const std::lock_guard lock(mutex_);
  auto member = std::make_shared<Member>();
  member->address = {fmt::format("{}/{}/{}", prefix_, next_member_++, name)};
  member->completions = std::move(completions);
  member->credit = credit;
  members_.emplace(member->address.text, member);
  return member;
}

core::Result<Connection> InprocHub::connect(const std::shared_ptr<Member>& self, const Address& remote) {
  const std::lock_guard lock(mutex_);
  const std::string& mine = self->address.text;
  if (self->closed) return core::fail(core::Errc::usage, fmt::format("{} is closed and cannot connect", mine));
  if (remote.text == mine) return core::fail(core::Errc::usage, fmt::format("{} cannot connect to itself", mine));
  if (!remote.text.starts_with("inproc:"))
    return core::fail(core::Errc::usage,
                      fmt::format("{} cannot reach '{}': that is no address of an inproc endpoint", mine, remote.text));
  const auto found = members_.find(remote.text);
  if (found == members_.end())
    return core::fail(core::Errc::peer_lost, fmt::format("peer {} is lost: it is not in this process", remote.text));
  const std::shared_ptr<Member>& other = found->second;
  for (const Remote& r : self->peers)
    if (r.link && r.link->sides[1 - r.side].member == other)
      return core::fail(core::Errc::usage, fmt::format("{} is connected to {} already", mine, remote.text));

  Remote added{.address = remote.text};
  for (const Remote& r : other->peers)
    if (r.link && r.link->sides[1 - r.side].member == self) added.link = r.link, added.side = 1 - r.side;
  if (!added.link) {
    added.link = std::make_shared<Link>();
    added.link->sides[0].member = self;
    added.link->sides[1].member = other;
  }
  const std::shared_ptr<Link> link = added.link;
  Side& side = link->sides[added.side];
  const bool both = link->sides[1 - added.side].joined;
  side.joined = true;
  side.peer = Peer{static_cast<std::uint32_t>(self->peers.size())};
  const Connection connection{side.peer, self->completions->next_operation()};
  added.establishing = connection.established;
  self->peers.push_back(std::move(added));
  self->waiting.emplace(connection.established, Waiting{Kind::connect, side.peer, Tag{}});
  if (both) {
    for (const Side& s : link->sides) {
      Remote& r = s.member->peers[index(s.peer)];
      finish(*s.member, {.operation = *std::exchange(r.establishing, {}), .peer = s.peer});
    }
  }
  return connection;
}

void InprocHub::disconnect(Member& self, Peer peer, std::string_view why) {
  const std::lock_guard lock(mutex_);
  const Remote& r = self.peers.at(index(peer));
  if (!r.link) return;
  std::array<Ending, 2> endings;
  endings[r.side].why = why;
  endings[1 - r.side].why = fmt::format("it disconnected: {}", why);
  end_link(r.link, endings);
}

core::Result<InprocHub::Remote*> InprocHub::live(Member& self, Peer peer) const {
  Remote& r = self.peers.at(index(peer));
  if (self.closed)
    return core::fail(core::Errc::usage, fmt::format("{} is closed and cannot transfer", self.address.text));
  if (!r.link) return tl::unexpected(r.lost);
  return &r;
}

core::Result<std::optional<OperationId>> InprocHub::send(Member& self, Peer peer, Tag tag, ConstMemoryView memory) {
  std::unique_lock lock(mutex_);
  const auto found = live(self, peer);
  if (!found) return tl::unexpected(found.error());
  const Remote& r = **found;
  Direction& direction = r.link->from[r.side];
  if (!has_credit(direction, self.credit, memory.size)) return std::nullopt;
  const Offered offered{self.completions->next_operation(), memory};
  direction.messages += 1;
  direction.bytes += memory.size;
  if (const auto posted = direction.matcher.arrive(tag, offered))
    move(lock, r.link, r.side, tag, offered, *posted);
  else
    self.waiting.emplace(offered.operation, Waiting{Kind::send, peer, tag});
  return offered.operation;
}

core::Result<OperationId> InprocHub::receive(Member& self, Peer peer, Tag tag, MemoryView memory) {
  std::unique_lock lock(mutex_);
  const auto found = live(self, peer);
  if (!found) return tl::unexpected(found.error());
  const Remote& r = **found;
  const Posted posted{self.completions->next_operation(), memory};
  if (const auto offered = r.link->from[1 - r.side].matcher.post(tag, posted))
    move(lock, r.link, 1 - r.side, tag, *offered, posted);
  else
    self.waiting.emplace(posted.operation, Waiting{Kind::receive, peer, tag});
  return posted.operation;
}

void InprocHub::move(std::unique_lock<std::mutex>& lock, std::shared_ptr<Link> link, std::size_t from, Tag tag,
                     Offered offered, Posted posted) {
  const Side& sender = link->sides[from];
  const Side& receiver = link->sides[1 - from];
  const std::size_t size = offered.memory.size;
  sender.member->waiting.erase(offered.operation);
  receiver.member->waiting.erase(posted.operation);
  Completion sent{.operation = offered.operation, .peer = sender.peer, .bytes = size};
  Completion received{.operation = posted.operation, .peer = receiver.peer, .bytes = size};
  const bool fits = size == posted.memory.size;
  if (fits) {
    sender.member->moving += 1;
    receiver.member->moving += 1;
    lock.unlock();
    if (size > 0) std::memcpy(posted.memory.data, offered.memory.data, size);
    lock.lock();
    sender.member->moving -= 1;
    receiver.member->moving -= 1;
    Traffic& out = sender.member->peers[index(sender.peer)].traffic;
    out.messages_sent += 1;
    out.bytes_sent += size;
    Traffic& in = receiver.member->peers[index(receiver.peer)].traffic;
    in.messages_received += 1;
    in.bytes_received += size;
    moved_.notify_all();
  } else {
    for (Completion* c : {&sent, &received}) {
      c->outcome = Outcome::failed;
      c->bytes = 0;
      c->error = {core::Errc::corrupt,
                  fmt::format("{} from {} to {}: the message has {} bytes, the receive {}", to_string(tag),
                              sender.member->address.text, receiver.member->address.text, size, posted.memory.size)};
    }
  }
  link->from[from].messages -= 1;
  link->from[from].bytes -= size;
  finish(*sender.member, std::move(sent));
  finish(*receiver.member, std::move(received));
}

void InprocHub::finish(Member& member, Completion completion) {
  member.waiting.erase(completion.operation);
  member.completions->push(std::move(completion));
}

void InprocHub::end_link(std::shared_ptr<Link> link, const std::array<Ending, 2>& endings) {
  const auto end_operation = [&](std::size_t s, OperationId operation) {
    const Side& side = link->sides[s];
    Completion ended{.operation = operation, .peer = side.peer, .outcome = endings[s].outcome};
    if (ended.outcome == Outcome::failed) ended.error = side.member->peers[index(side.peer)].lost;
    finish(*side.member, std::move(ended));
  };
  for (const std::size_t s : {0u, 1u}) {
    const Side& side = link->sides[s];
    if (!side.joined) continue;  // never connected, so it has posted nothing
    Remote& r = side.member->peers[index(side.peer)];
    r.lost = {core::Errc::peer_lost, fmt::format("peer {} is lost: {}", r.address, endings[s].why)};
    r.link.reset();
    if (const auto operation = std::exchange(r.establishing, {})) end_operation(s, *operation);
  }
  for (const std::size_t s : {0u, 1u})
    link->from[s].matcher.drain([&](Tag, const Posted& p) { end_operation(1 - s, p.operation); },
                                [&](Tag, const Offered& o) { end_operation(s, o.operation); });
}

void InprocHub::cancel(Member& self, OperationId operation) {
  const std::lock_guard lock(mutex_);
  const auto found = self.waiting.find(operation);
  if (found == self.waiting.end()) return;  // matched or completed
  const Waiting waiting = found->second;
  Remote& r = self.peers[index(waiting.peer)];
  const std::shared_ptr<Link> link = r.link;
  Direction& out = link->from[r.side];
  switch (waiting.kind) {
    case Kind::connect:
      r.establishing.reset();
      finish(self, {.operation = operation, .peer = waiting.peer, .outcome = Outcome::cancelled});
      end_link(link, {Ending{.why = "connecting was cancelled"}, Ending{.why = "connecting was cancelled"}});
      return;
    case Kind::send: {
      out.bytes -= out.matcher.remove_message(waiting.tag, operation)->memory.size;
      out.messages -= 1;
      break;
    }
    case Kind::receive: link->from[1 - r.side].matcher.remove_receive(waiting.tag, operation); break;
  }
  finish(self, {.operation = operation, .peer = waiting.peer, .outcome = Outcome::cancelled});
}

Traffic InprocHub::traffic(const Member& self, Peer peer) const {
  const std::lock_guard lock(mutex_);
  return self.peers.at(index(peer)).traffic;
}

void InprocHub::close(Member& self) {
  std::unique_lock lock(mutex_);
  if (!self.closed) {
    self.closed = true;
    members_.erase(self.address.text);
    std::erase_if(offers_, [&](const auto& entry) { return entry.second.owner.lock().get() == &self; });
    const auto end = [&](const std::shared_ptr<Link>& link, std::size_t mine) {
      std::array<Ending, 2> endings;
      endings[mine] = {Outcome::cancelled, "this endpoint was closed"};
      endings[1 - mine].why = "it closed its endpoint";
      end_link(link, endings);
    };
    for (const Remote& r : self.peers)
      if (r.link) end(r.link, r.side);
    for (const auto& [address, other] : members_)  // members that wait for this one's connect()
      for (const Remote& r : other->peers)
        if (r.link && r.link->sides[1 - r.side].member.get() == &self) end(r.link, 1 - r.side);
  }
  moved_.wait(lock, [&] { return self.moving == 0; });
}

core::Result<Exposure> InprocHub::expose(const std::shared_ptr<Member>& self, std::shared_ptr<core::Buffer> arena) {
  const std::lock_guard lock(mutex_);
  if (self->closed)
    return core::fail(core::Errc::usage, fmt::format("{} is closed and cannot expose an arena", self->address.text));
  const std::string key = fmt::format("{}/arena/{}", prefix_, next_arena_++);
  offers_.emplace(key, Offer{self, std::move(arena)});
  const auto withdraw = [hub = shared_from_this(), key](void*) {
    Offer withdrawn;  // releases its arena after the mutex is unlocked
    const std::lock_guard guard(hub->mutex_);
    if (const auto found = hub->offers_.find(key); found != hub->offers_.end()) {
      withdrawn = std::move(found->second);
      hub->offers_.erase(found);
    }
  };
  return Exposure({key}, std::shared_ptr<void>(nullptr, withdraw));
}

core::Result<Mapping> InprocHub::attach(const ArenaKey& key, std::size_t floats) {
  const std::lock_guard lock(mutex_);
  const auto found = offers_.find(key.text);
  if (found == offers_.end())
    return core::fail(core::Errc::peer_lost,
                      fmt::format("arena {} is not on offer: withdrawn, or its owner is gone", key.text));
  const std::shared_ptr<core::Buffer>& arena = found->second.arena;
  if (arena->size() != floats)
    return core::fail(core::Errc::corrupt,
                      fmt::format("arena {} holds {} floats, not {}", key.text, arena->size(), floats));
  // The hub owns the allocator and must outlive the arena: the fields are destroyed in reverse order.
  struct Kept {
    std::shared_ptr<InprocHub> hub;
    std::shared_ptr<core::Buffer> arena;
  };
  return Mapping(arena->view(), std::make_shared<Kept>(Kept{shared_from_this(), arena}));
}

}  // namespace troupe::transport
