// The part of ShmEndpointImpl that runs in its thread.
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "transport/shm/endpoint_impl.hpp"

namespace troupe::transport {
namespace {

constexpr unsigned kSourceShift = 56;
constexpr int kReads = 16;  // inboxes read from one peer before the other peers are served

std::uint64_t token(std::uint32_t source, std::uint64_t number) noexcept {
  return std::uint64_t{source} << kSourceShift | number;
}

epoll_event event_for(std::uint64_t data, bool for_writing) noexcept {
  epoll_event event{};
  event.events = EPOLLIN | (for_writing ? EPOLLOUT : 0U);
  event.data.u64 = data;
  return event;
}

}  // namespace

void ShmEndpointImpl::start() {
  // The program's own threads handle signals.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ShmEndpointImpl::watch(int fd, Source source, std::uint64_t number, bool for_writing) noexcept {
  epoll_event event = event_for(token(static_cast<std::uint32_t>(source), number), for_writing);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void ShmEndpointImpl::rewatch(int fd, Source source, std::uint64_t number, bool for_writing) noexcept {
  epoll_event event = event_for(token(static_cast<std::uint32_t>(source), number), for_writing);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void ShmEndpointImpl::accept() {
  listener_.accept([this](std::uint64_t number, int socket) { watch(socket, Source::pending_connection, number); });
}

/// When both members have connected to each other, the connection made by the member with the smaller id is kept. The member that
/// made the other one closes it.
void ShmEndpointImpl::hear(std::uint64_t pending_connection) {
  const auto id = listener_.hear(pending_connection);
  if (!id || *id > self_.address.id) return;
  const auto calling = std::ranges::find_if(links_, [&](const auto& link) {
    return link->state() == ShmLink::State::connecting && link->remote().id == *id;
  });
  if (calling == links_.end()) return;
  auto caller = listener_.take((*calling)->remote());
  if (!caller) return;
  const auto index = static_cast<std::size_t>(calling - links_.begin());
  (*calling)->accept(std::move(caller->socket), caller->introduction);
  rewatch((*calling)->socket(), Source::link, index);
  established(index);
}

/// Watches the process of a link that has just been established.
void ShmEndpointImpl::established(std::size_t index) noexcept {
  const ShmLink& link = *links_[index];
  if (link.state() != ShmLink::State::established) return;
  if (link.process_end() >= 0) watch(link.process_end(), Source::process, index);
  follow(index);
}

/// After every posted operation: wakes the thread if there are bytes to copy, and watches the socket for room if frames wait.
void ShmEndpointImpl::follow(std::size_t index) noexcept {
  const ShmLink& link = *links_[index];
  if (link.waits_for_room() != watched_for_room_[index]) {
    watched_for_room_[index] = link.waits_for_room();
    if (link.socket() >= 0) rewatch(link.socket(), Source::link, index, link.waits_for_room());
  }
  if (!copying_ && link.has_piece() && std::this_thread::get_id() != thread_.get_id()) ::eventfd_write(wake_.get(), 1);
}

void ShmEndpointImpl::lose(std::size_t index, std::string_view why) {
  links_[index]->end(Outcome::failed, why, fmt::format("it gave us up: {}", why));
}

void ShmEndpointImpl::read(std::size_t index) {
  ShmLink& link = *links_[index];
  for (int i = 0; i < kReads && link.state() != ShmLink::State::lost; ++i) {
    const bool connecting = link.state() == ShmLink::State::connecting;
    const ShmRead read = inbox_.receive(link.socket());
    for (const ShmFrame& frame : inbox_.frames()) {
      if (const auto taken = link.take(frame); !taken) return lose(index, taken.error().message);
    }
    if (connecting) established(index);
    switch (read) {
      case ShmRead::drained: link.flush(); return follow(index);
      case ShmRead::more: break;
      case ShmRead::closed: return lose(index, connecting ? "it hung up" : "its process ended");
      case ShmRead::malformed: return lose(index, "it sent a packet that is no frame");
    }
  }
}

void ShmEndpointImpl::handle(Source source, std::uint64_t number) {
  switch (source) {
    case Source::wake: {
      eventfd_t ignored = 0;
      ::eventfd_read(wake_.get(), &ignored);
      return;
    }
    case Source::listener: return accept();
    case Source::pending_connection: return hear(number);
    case Source::link: return read(number);
    case Source::process:
      read(number);  // its last frames
      if (links_[number]->state() != ShmLink::State::lost) lose(number, "its process ended");
      return;
  }
}

/// Copies one piece of each link. False when there was nothing to copy.
bool ShmEndpointImpl::copy_pieces(std::unique_lock<std::mutex>& lock) {
  bool any = false;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    ShmLink& link = *links_[i];
    if (link.state() == ShmLink::State::lost || !link.has_piece()) continue;
    const auto piece = link.next_piece();
    if (!piece) {
      lose(i, piece.error().message);
      continue;
    }
    copying_ = true;
    lock.unlock();
    const bool copied = copy_piece(*piece);
    lock.lock();
    copying_ = false;
    if (const auto result = link.piece_copied(copied); !result) lose(i, result.error().message);
    copied_.notify_all();
    follow(i);
    any = true;
  }
  return any;
}

void ShmEndpointImpl::run() noexcept {
  ::pthread_setname_np(::pthread_self(), "shm");
  std::array<epoll_event, 64> events;
  bool copying = false;
  for (;;) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), copying ? 0 : -1);
    std::unique_lock lock(mutex_);
    if (closed_) return;
    for (int i = 0; i < count; ++i) {
      const std::uint64_t data = events[static_cast<std::size_t>(i)].data.u64;
      handle(static_cast<Source>(data >> kSourceShift), data & ((std::uint64_t{1} << kSourceShift) - 1));
    }
    copying = copy_pieces(lock);
    if (closed_) return;
  }
}

}  // namespace troupe::transport
