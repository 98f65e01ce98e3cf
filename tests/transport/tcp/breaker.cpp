#include "breaker.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace troupe::transport::testing {
namespace {

std::uint16_t port_behind(const Party& party) { return parse_tcp_address(party->address().text)->at.port; }

TcpOptions at(TcpOptions options, const char* listen, const char* advertise) {
  options.listen = std::string(listen) + ":0";
  options.advertise = advertise;
  return options;
}

}  // namespace

Breaker::Breaker(const Party& behind, const char* front, const char* back, Draw draw)
    : listening_(listen_on(front, port_behind(behind))),
      back_(back),
      port_(port_behind(behind)),
      draw_(std::move(draw)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { run(); }) {}

Breaker::~Breaker() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake();
  thread_.join();
  ::close(wake_);
}

void Breaker::wake() const {
  const std::uint64_t one = 1;
  EXPECT_EQ(::write(wake_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
}

void Breaker::hold() {
  const std::lock_guard lock(mutex_);
  held_ = true;
  for (Carried& c : carried_) reset(c);
  carried_.clear();
  wake();
}

void Breaker::release() {
  const std::lock_guard lock(mutex_);
  held_ = false;
  wake();
}

std::size_t Breaker::resets() {
  const std::lock_guard lock(mutex_);
  return resets_;
}

void Breaker::reset(Carried& carried) {
  carried.in.reset();
  carried.out.reset();
  resets_ += 1;
}

void Breaker::run() {
  for (;;) {
    std::vector<pollfd> watched{{wake_, POLLIN, 0}};
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return;
      if (!held_) watched.push_back({listening_.descriptor(), POLLIN, 0});
      for (const Carried& c : carried_)
        for (const RawSocket* s : {&c.in, &c.out}) watched.push_back({s->descriptor(), POLLIN, 0});
    }
    if (::poll(watched.data(), watched.size(), -1) <= 0) continue;
    std::uint64_t ignored = 0;
    (void)!::read(wake_, &ignored, sizeof ignored);
    const std::lock_guard lock(mutex_);
    const auto readable = [&](const RawSocket& s) {
      return std::ranges::any_of(watched, [&](const pollfd& w) { return w.fd == s.descriptor() && w.revents != 0; });
    };
    for (auto c = carried_.begin(); c != carried_.end();) {
      const bool on = (!readable(c->in) || carry(*c, 0)) && (!readable(c->out) || carry(*c, 1));
      c = on ? std::next(c) : carried_.erase(c);
    }
    if (held_ || !readable(listening_)) continue;
    RawSocket in(::accept4(listening_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
    RawSocket out = RawSocket::try_connect(back_, port_);
    if (out.good()) carried_.push_back({std::move(in), std::move(out), {draw_(), draw_()}});
  }
}

bool Breaker::carry(Carried& carried, int side) {
  std::array<std::byte, 1 << 16> buffer;
  const RawSocket& from = side == 0 ? carried.in : carried.out;
  const RawSocket& to = side == 0 ? carried.out : carried.in;
  const ssize_t got = ::recv(from.descriptor(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN) return true;
  if (got <= 0) return false;
  std::size_t& left = carried.left[side];
  const std::size_t size = std::min(left, static_cast<std::size_t>(got));
  left -= size;
  if (::send(to.descriptor(), buffer.data(), size, MSG_NOSIGNAL) != static_cast<ssize_t>(size)) return false;
  if (left > 0) return true;
  reset(carried);
  return false;
}

BrokenPair::BrokenPair(TcpOptions options, Credit credit, Breaker::Draw draw)
    : a(tcp_party("a", at(options, "127.0.0.5", "127.0.0.4"), credit)),
      b(tcp_party("b", at(options, "127.0.0.2", "127.0.0.3"), credit)),
      to_a(a, "127.0.0.4", "127.0.0.5", draw),
      to_b(b, "127.0.0.3", "127.0.0.2", draw),
      pair(join(a, b)) {}

void BrokenPair::hold() {
  to_a.hold();
  to_b.hold();
}

void BrokenPair::release() {
  to_a.release();
  to_b.release();
}

std::size_t BrokenPair::resets() { return to_a.resets() + to_b.resets(); }

}  // namespace troupe::transport::testing
