#include "transport/shm/endpoint_impl.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

std::size_t index_of(Peer peer) noexcept { return static_cast<std::size_t>(peer); }

}  // namespace

core::Result<std::unique_ptr<ShmEndpointImpl>> ShmEndpointImpl::create(const EndpointOptions& options) {
  const auto id = random_shm_token();
  const auto secret = random_shm_token();
  const auto probe = random_shm_token();
  for (const auto* token : {&id, &secret, &probe})
    if (!*token) return tl::unexpected(token->error());
  ShmSelf self{.address = {.id = *id, .secret = *secret, .name = options.name},
               .completions = options.completions,
               .credit = options.credit,
               .reads_peers = options.shm_reads_peers};
  std::memcpy(&self.probe, probe->data(), sizeof self.probe);
  std::unique_ptr<ShmEndpointImpl> member(new ShmEndpointImpl(std::move(self)));
  if (auto opened = member->open(); !opened) return tl::unexpected(opened.error());
  return member;
}

ShmEndpointImpl::ShmEndpointImpl(ShmSelf self)
    : self_(std::move(self)), arenas_(self_.address), listener_(self_, arenas_) {}

ShmEndpointImpl::~ShmEndpointImpl() { close(); }

core::Result<void> ShmEndpointImpl::open() {
  if (auto opened = listener_.open(); !opened) return opened;
  epoll_ = core::FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
  wake_ = core::FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_ || !wake_) return tl::unexpected(core::from_errno(errno, "create", "the event descriptors of shm"));
  watch(wake_.get(), Source::wake, 0);
  watch(listener_.socket(), Source::listener, 0);
  start();
  return {};
}

core::Result<Connection> ShmEndpointImpl::connect(const Address& remote) {
  const std::lock_guard lock(mutex_);
  const std::string mine = self_.address.label();
  if (closed_) return core::fail(core::Errc::usage, fmt::format("{} is closed and cannot connect", mine));
  const auto address = ShmAddress::parse(remote.text);
  if (!address)
    return core::fail(core::Errc::usage,
                      fmt::format("{} cannot reach '{}': that is no address of an shm endpoint", mine, remote.text));
  if (address->id == self_.address.id)
    return core::fail(core::Errc::usage, fmt::format("{} cannot connect to itself", mine));
  for (const auto& link : links_)
    if (link->state() != ShmLink::State::lost && link->remote().id == address->id)
      return core::fail(core::Errc::usage, fmt::format("{} is connected to {} already", mine, address->label()));

  // Reads pending connections first: a peer that has connected and left again must not be answered.
  accept();
  for (const std::uint64_t pending_connection : listener_.numbers()) hear(pending_connection);
  const auto lost = [&](const std::string& why) {
    return core::fail(core::Errc::peer_lost, fmt::format("peer {} is lost: {}", address->label(), why));
  };
  const std::size_t index = links_.size();
  auto link = std::make_unique<ShmLink>(self_, Peer{static_cast<std::uint32_t>(index)}, *address);
  if (auto caller = listener_.take(*address)) {
    link->accept(std::move(caller->socket), caller->introduction);
    rewatch(link->socket(), Source::link, index);
  } else {
    auto socket = shm_dial(address->socket_name());
    if (!socket && socket.error().code != core::Errc::peer_lost) return tl::unexpected(socket.error());
    if (!socket) return lost(socket.error().message);
    if (!process_of(socket->get()).same_user) return lost("it is another user's process");
    const ShmIntroduction introduction = self_.introduction_for(*address);
    if (send_frame(socket->get(), {.kind = ShmFrameKind::hello}, std::as_bytes(std::span(&introduction, 1))) !=
        ShmWrite::sent)
      return lost("it left");
    link->dialled(std::move(*socket));
    watch(link->socket(), Source::link, index);
  }
  const Connection connection = link->connection();
  links_.push_back(std::move(link));
  watched_for_room_.push_back(false);
  established(index);
  return connection;
}

void ShmEndpointImpl::disconnect(Peer peer, std::string_view why) {
  const std::lock_guard lock(mutex_);
  links_.at(index_of(peer))->end(Outcome::failed, why, fmt::format("it disconnected: {}", why));
}

core::Result<ShmLink*> ShmEndpointImpl::live(Peer peer) const {
  ShmLink* const link = links_.at(index_of(peer)).get();
  if (closed_)
    return core::fail(core::Errc::usage, fmt::format("{} is closed and cannot transfer", self_.address.label()));
  if (link->state() == ShmLink::State::lost) return tl::unexpected(link->lost());
  return link;
}

core::Result<std::optional<OperationId>> ShmEndpointImpl::send(Peer peer, Tag tag, ConstMemoryView memory) {
  const std::lock_guard lock(mutex_);
  const auto link = live(peer);
  if (!link) return tl::unexpected(link.error());
  const auto operation = (*link)->send(tag, memory);
  follow(index_of(peer));
  return operation;
}

core::Result<OperationId> ShmEndpointImpl::receive(Peer peer, Tag tag, MemoryView memory) {
  const std::lock_guard lock(mutex_);
  const auto link = live(peer);
  if (!link) return tl::unexpected(link.error());
  const OperationId operation = (*link)->receive(tag, memory);
  follow(index_of(peer));
  return operation;
}

void ShmEndpointImpl::cancel(OperationId operation) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (links_[i]->state() == ShmLink::State::lost || !links_[i]->cancel(operation)) continue;
    follow(i);
    return;
  }
}

Traffic ShmEndpointImpl::traffic(Peer peer) const {
  const std::lock_guard lock(mutex_);
  return links_.at(index_of(peer))->traffic();
}

std::uint64_t ShmEndpointImpl::progress(Peer peer) const {
  const std::lock_guard lock(mutex_);
  return links_.at(index_of(peer))->progress();
}

void ShmEndpointImpl::close() noexcept {
  {
    std::unique_lock lock(mutex_);
    if (!std::exchange(closed_, true)) {
      for (const auto& link : links_)
        link->end(Outcome::cancelled, "this endpoint was closed", "it closed its endpoint");
      listener_.close();
      arenas_.close();
      if (wake_) ::eventfd_write(wake_.get(), 1);
    }
    copied_.wait(lock, [this] { return !copying_; });
  }
  const std::lock_guard lock(ending_);
  if (thread_.joinable()) thread_.join();
}

}  // namespace troupe::transport
