#include "transport/fabric/endpoint.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "transport/common/host_number.hpp"
#include "transport/common/wire_hash.hpp"

namespace troupe::transport {
namespace {

constexpr std::size_t kLongestName = 200;

constexpr std::string_view kClosed = "it closed its endpoint";

/// A short form of an address, for error messages: its start and the member's name.
std::string shown(const std::string& address) {
  constexpr std::size_t kEnough = 20;
  const auto slash = address.find('/');
  if (slash == std::string::npos || slash <= kEnough) return address;
  return address.substr(0, kEnough) + "..." + address.substr(slash);
}

}  // namespace

FabricEndpoint::FabricEndpoint(std::string kind, std::unique_ptr<Fabric> fabric, const EndpointOptions& options)
    : completions_(options.completions),
      credit_(options.credit),
      secret_(options.secret),
      host_(options.check_within_host ? 0 : host_number()),
      device_(options.device),
      fabric_(std::move(fabric)),
      checksums_(options.checksum, [fabric = fabric_.get()] { fabric->wake(); }),
      native_sum_(fabric_->native_sum()),
      address_{fmt::format("{}:{}/{}", kind, fabric_->address(), options.name.substr(0, kLongestName))},
      capabilities_{.name = std::move(kind),
                    .spaces = {core::MemorySpace::host, core::MemorySpace::host_shared, core::MemorySpace::host_pinned},
                    .max_message_bytes = fabric_->max_transfer_bytes(),
                    .ordering = Ordering::per_tag,
                    .maps_peer_memory = false,
                    .between_hosts = true,
                    .encrypted = false},
      thread_([this] { drive(); }) {}

void FabricEndpoint::drive() {
  if (device_) device_->enter();
  std::unique_lock lock(mutex_);
  while (!stop_) {
    for (const auto& ended : checksums_.take()) summed(ended);
    if (fabric_->progress(*this) || !fabric_->prepare_to_wait()) {
      lock.unlock();  // lets callers post in between
      std::this_thread::yield();
      lock.lock();
      continue;
    }
    asleep_ = true;
    lock.unlock();
    fabric_->wait();
    lock.lock();
    asleep_ = false;
  }
}

void FabricEndpoint::wake_if_asleep() {
  if (std::exchange(asleep_, false)) fabric_->wake();
}

bool FabricEndpoint::takes_device(Peer peer, std::size_t bytes) const {
  if (!fabric_->takes_device() || bytes <= kShortMessage) return false;
  const std::lock_guard lock(mutex_);
  const Link& link = at(peer);
  return !link.lost && link.remote != 0 && (!link.sums || checksums_.available());
}

void FabricEndpoint::check(core::MemorySpace space, std::size_t bytes) const {
  // Of a peer that takes_device() named: it may have been lost since.
  const bool direct = space == core::MemorySpace::device && fabric_->takes_device() && bytes > kShortMessage;
  if (direct && device_) device_->enter();
  if (!direct && !capabilities_.takes(space))
    throw std::invalid_argument(
        fmt::format("{}: cannot reach this memory space; ask capabilities()", capabilities_.name));
  if (bytes > capabilities_.max_message_bytes)
    throw std::invalid_argument(fmt::format("{}: message too long; ask capabilities()", capabilities_.name));
}

core::Result<FabricEndpoint::Link*> FabricEndpoint::live(Peer peer) const {
  Link& link = at(peer);
  if (closed_)
    return core::fail(core::Errc::usage, fmt::format("{} is closed and cannot transfer", shown(address_.text)));
  if (link.lost) return tl::unexpected(link.error);
  return &link;
}

FabricEndpoint::Link* FabricEndpoint::connected_to(std::string_view address) const {
  const auto found = std::ranges::find_if(links_, [&](const auto& l) { return !l->lost && l->address == address; });
  return found == links_.end() ? nullptr : found->get();
}

core::Result<Connection> FabricEndpoint::connect(const Address& remote) {
  const std::lock_guard lock(mutex_);
  const std::string mine = shown(address_.text), theirs = shown(remote.text);
  if (closed_) return core::fail(core::Errc::usage, fmt::format("{} is closed and cannot connect", mine));
  if (remote.text == address_.text)
    return core::fail(core::Errc::usage, fmt::format("{} cannot connect to itself", mine));
  const auto colon = capabilities_.name.size(), slash = remote.text.find('/');
  if (!remote.text.starts_with(capabilities_.name + ":") || slash == std::string::npos)
    return core::fail(core::Errc::usage,
                      fmt::format("{} cannot reach '{}': that is no address of an endpoint of kind {}", mine, theirs,
                                  capabilities_.name));
  if (connected_to(remote.text))
    return core::fail(core::Errc::usage, fmt::format("{} is connected to {} already", mine, theirs));
  const auto wire = fabric_->open(std::string_view(remote.text).substr(colon + 1, slash - colon - 1));
  if (!wire)
    return core::fail(wire.error().code,
                      wire.error().code == core::Errc::peer_lost
                          ? fmt::format("peer {} is lost: {}", theirs, wire.error().message)
                          : fmt::format("{} cannot reach '{}': {}", mine, theirs, wire.error().message));
  auto link = std::make_unique<Link>();
  link->peer = Peer{static_cast<std::uint32_t>(links_.size())};
  link->address = remote.text;
  link->name = theirs;
  // Ordered, so that a newer hello is recognised; the low half is random, so that only a peer that got our hello knows the number.
  link->id = next_link_++ << 32 | std::random_device{}();
  link->wire = *wire;
  link->establishing = completions_->next_operation();
  if (const auto caller = callers_.find(remote.text); caller != callers_.end()) {
    link->heard = caller->second;
    callers_.erase(caller);
  }
  ids_.emplace(link->id, link->peer);
  waiting_.emplace(*link->establishing, Waiting{Waiting::Kind::connect, link->peer});
  const Connection connection{link->peer, *link->establishing};
  links_.push_back(std::move(link));
  greet(*links_.back());
  wake_if_asleep();
  return connection;
}

void FabricEndpoint::disconnect(Peer peer, std::string_view why) {
  const std::lock_guard lock(mutex_);
  Link& link = at(peer);
  if (link.lost) return;
  end(link, Outcome::failed, why, fmt::format("it disconnected: {}", why));
  wake_if_asleep();
}

core::Result<std::optional<OperationId>> FabricEndpoint::send(Peer peer, Tag tag, ConstMemoryView memory) {
  check(memory.space, memory.size);
  const std::lock_guard lock(mutex_);
  const auto found = live(peer);
  if (!found) return tl::unexpected(found.error());
  Link& link = **found;
  // A message above the credit's bytes is accepted only when no other payload is outstanding.
  const bool fits = link.bytes == 0 || (link.bytes <= credit_.bytes && memory.size <= credit_.bytes - link.bytes);
  if (link.sends.size() >= credit_.messages || !fits) return std::nullopt;
  const OperationId operation = completions_->next_operation();
  Sending& sending = link.sends[operation];
  sending = {.tag = tag, .memory = memory};
  link.bytes += memory.size;
  waiting_.emplace(operation, Waiting{Waiting::Kind::send, peer, tag});
  if (link.remote != 0) offer(link, operation, sending);
  wake_if_asleep();
  return operation;
}

core::Result<OperationId> FabricEndpoint::receive(Peer peer, Tag tag, MemoryView memory) {
  check(memory.space, memory.size);
  const std::lock_guard lock(mutex_);
  const auto found = live(peer);
  if (!found) return tl::unexpected(found.error());
  Link& link = **found;
  const Posted posted{completions_->next_operation(), memory};
  waiting_.emplace(posted.operation, Waiting{Waiting::Kind::receive, peer, tag});
  if (auto offered = link.matcher.post(tag, posted)) {
    deliver(link, tag, std::move(*offered), posted);
    wake_if_asleep();
  }
  return posted.operation;
}

core::Result<OperationId> FabricEndpoint::sum(core::Span vector) {
  const std::lock_guard lock(mutex_);
  if (closed_) return core::fail(core::Errc::usage, fmt::format("{} is closed and cannot sum", shown(address_.text)));
  const OperationId operation = completions_->next_operation();
  const TransferId transfer{next_transfer_++};
  moving_.emplace(transfer, Moving{.kind = Moving::Kind::sum, .operation = operation, .bytes = vector.size_bytes()});
  native_sum_->sum(vector, transfer);
  wake_if_asleep();
  return operation;
}

void FabricEndpoint::cancel(OperationId operation) {
  const std::lock_guard lock(mutex_);
  const auto found = waiting_.find(operation);
  if (found == waiting_.end()) return;
  const Waiting waiting = found->second;
  Link& link = at(waiting.peer);
  if (link.lost || closed_) return;  // its completion follows
  const Completion cancelled{.operation = operation, .peer = waiting.peer, .outcome = Outcome::cancelled};
  switch (waiting.kind) {
    case Waiting::Kind::connect:
      link.establishing.reset();
      finish(cancelled);
      end(link, Outcome::failed, "connecting was cancelled", "connecting was cancelled");
      break;
    case Waiting::Kind::receive:
      if (link.matcher.remove_receive(waiting.tag, operation)) finish(cancelled);
      break;
    case Waiting::Kind::send: {
      const Sending& sending = link.sends.at(operation);
      if (!sending.offered) {
        link.bytes -= sending.memory.size;
        link.sends.erase(operation);
        finish(cancelled);
      } else if (!sending.is_in_use() && !sending.done) {
        reply(link, {.kind = FrameKind::withdraw,
                     .operation = static_cast<std::uint64_t>(operation),
                     .tag = static_cast<std::uint64_t>(waiting.tag)});
      }
      break;
    }
  }
  wake_if_asleep();
}

Traffic FabricEndpoint::traffic(Peer peer) const {
  const std::lock_guard lock(mutex_);
  return at(peer).traffic;
}

std::uint64_t FabricEndpoint::progress(Peer peer) const {
  const std::lock_guard lock(mutex_);
  return at(peer).traffic.sum() + at(peer).pieces;
}

void FabricEndpoint::close() noexcept {
  const std::lock_guard closing(closing_);  // a second caller waits for the first
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = stop_ = true;
    wake_if_asleep();
  }
  thread_.join();
  if (device_) device_->enter();  // from here on this thread calls the library
  const std::lock_guard lock(mutex_);
  for (const auto& link : links_)
    if (!link->lost) end(*link, Outcome::cancelled, "this endpoint was closed", kClosed);
  for (const auto& [address, caller] : callers_) dismiss(address, caller);
  // Behind end(): peers hear of it before the device has ended.
  for (const auto& ended : checksums_.drain()) summed(ended);
  fabric_->shutdown(*this);
}

void FabricEndpoint::dismiss(const std::string& address, std::uint64_t caller) {
  const auto begin = capabilities_.name.size() + 1, slash = address.find('/');
  if (slash == std::string::npos || slash < begin) return;
  const auto wire = fabric_->open(std::string_view(address).substr(begin, slash - begin));
  if (!wire) return;
  fabric_->send_frame(*wire, encode({.kind = FrameKind::goodbye, .to = caller, .tag = wire_hash(address_.text)},
                                    encode(address_.text, kClosed)));
  fabric_->close(*wire);
}

void FabricEndpoint::finish(Completion completion) {
  waiting_.erase(completion.operation);
  completions_->push(std::move(completion));
}

Completion FabricEndpoint::lost_with(const Link& link, OperationId operation) {
  Completion ended{.operation = operation, .peer = link.peer, .outcome = link.ending};
  if (link.ending == Outcome::failed) ended.error = link.error;
  return ended;
}

void FabricEndpoint::end(Link& link, Outcome ending, std::string_view why, std::string_view tell_peer) {
  link.lost = true;
  link.ending = ending;
  link.error = {core::Errc::peer_lost, fmt::format("peer {} is lost: {}", link.name, why)};
  ids_.erase(link.id);
  const auto over = [&](OperationId operation) { finish(lost_with(link, operation)); };
  if (const auto operation = std::exchange(link.establishing, {})) over(*operation);
  link.matcher.drain([&](Tag, const Posted& posted) { over(posted.operation); }, [](Tag, const Offered&) {});
  std::erase_if(link.arriving, [&](const auto& entry) {
    if (!entry.second.whole || entry.second.summing) return false;
    over(entry.second.posted.operation);
    return true;
  });
  std::erase_if(link.sends, [&](const auto& entry) {
    if (entry.second.is_in_use()) return false;
    over(entry.first);
    return true;
  });
  if (!tell_peer.empty())
    fabric_->send_frame(
        link.wire,
        encode({.kind = FrameKind::goodbye, .to = link.heard, .from = link.id, .tag = wire_hash(address_.text)},
               encode(address_.text, tell_peer)));
  fabric_->close(link.wire);
}

void FabricEndpoint::on_wire_lost(WireId wire, std::string why) {
  for (const auto& link : links_)
    if (!link->lost && link->wire == wire) return end(*link, Outcome::failed, why, {});
}

}  // namespace troupe::transport
