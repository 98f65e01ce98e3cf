// Clients of `troupe serve` for bench/service.sh: dashboards that look at a run live, and a crowd of connections that ask once. Plain sockets and one thread,
// so that the clients themselves cost little. Dashboards come from addresses of their own (127.0.0.2 and up), as they would from desks: what
// the service grants an address is not what is measured. The crowd comes from one.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace {

using Clock = std::chrono::steady_clock;

struct Target {
  std::uint16_t port = 0;
  std::string token, run;
};

enum class Asks : bool { once, again };  // for a stream of events, or for the run's state now and then

struct Connection {
  int socket = -1;
  Asks asks = Asks::once;
  bool waits = false;                 // for an answer
  Clock::time_point next{}, asked{};  // of the state
  std::string unread;
  std::uint64_t updates = 0, events = 0;  // of the run's stream
  Clock::time_point last{};               // when something came
};

int connect_from(const std::string& own, std::uint16_t port, bool wait) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (wait ? 0 : SOCK_NONBLOCK), 0);
  if (socket < 0) return -1;
  const int on = 1;
  ::setsockopt(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in from{};
  from.sin_family = AF_INET;
  ::inet_pton(AF_INET, own.c_str(), &from.sin_addr);
  sockaddr_in to = from;
  ::inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  to.sin_port = htons(port);
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&from), sizeof from) == 0 &&
      (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 || errno == EINPROGRESS))
    return socket;
  ::close(socket);
  return -1;
}

bool send_all(int socket, const std::string& text) {
  return ::send(socket, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

std::string request(const Target& target, std::string_view path) {
  return fmt::format("GET /api/v1/{} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n\r\n", path,
                     target.token);
}

/// Pages of a run: each follows its events and those of all runs, as the dashboard does. With `per_s` each asks for the state as often, too.
class Dashboards {
 public:
  Dashboards(Target target, int count, double per_s)
      : target_(std::move(target)), count_(count), pause_(per_s > 0 ? 1.0 / per_s : 0) {
    for (int k = 0; k < count; ++k) {
      const auto from = fmt::format("127.0.0.{}", 2 + k);
      add(from, Asks::once, "runs/" + target_.run + "/events");
      add(from, Asks::once, "events");
      if (per_s > 0) add(from, Asks::again, {});
      all_.back().next = Clock::now() + std::chrono::duration_cast<Clock::duration>(k * pause_ / count);
    }
  }

  /// What comes before `settled` is not counted.
  void look_for(std::chrono::duration<double> time, std::chrono::duration<double> settled) {
    std::vector<pollfd> polled(all_.size());
    begin_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(settled);
    for (const auto end = Clock::now() + time; Clock::now() < end;) {
      auto soonest = Clock::now() + std::chrono::milliseconds(100);
      for (std::size_t i = 0; i < all_.size(); ++i) {
        ask(all_[i], Clock::now());
        if (all_[i].asks == Asks::again && !all_[i].waits) soonest = std::min(soonest, all_[i].next);
        polled[i] = {all_[i].socket, POLLIN, 0};
      }
      const auto wait = std::chrono::ceil<std::chrono::milliseconds>(soonest - Clock::now()).count();
      ::poll(polled.data(), polled.size(), static_cast<int>(std::max<std::int64_t>(wait, 0)));
      for (std::size_t i = 0; i < all_.size(); ++i)
        if ((polled[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) read(all_[i]);
    }
  }

  /// `seconds`: that were counted.
  void report(double seconds) {
    std::ranges::sort(latencies_);
    const auto at = [&](double part) {
      return latencies_.empty()
                 ? 0.0
                 : latencies_[static_cast<std::size_t>(part * static_cast<double>(latencies_.size() - 1))];
    };
    std::uint64_t updates = 0, fewest = ~std::uint64_t{0}, events = 0;
    for (std::size_t i = 0; i < all_.size(); i += all_.size() / static_cast<std::size_t>(count_)) {
      updates += all_[i].updates;
      events += all_[i].events;
      fewest = std::min(fewest, all_[i].updates);
    }
    const double all = count_ * seconds;
    fmt::print(
        "{{\"updates_per_s\":{:.2f},\"fewest\":{:.2f},\"events_per_s\":{:.2f},\"event_kB_per_s\":{:.1f},\"answers_per_"
        "s\":{:.1f},"
        "\"others\":{},\"median_ms\":{:.2f},\"p99_ms\":{:.2f},\"lost\":{}}}\n",
        static_cast<double>(updates) / all, static_cast<double>(fewest) / seconds, static_cast<double>(events) / all,
        static_cast<double>(event_bytes_) / seconds / 1e3, static_cast<double>(latencies_.size()) / seconds, others_,
        at(0.5), at(0.99), lost_);
  }

 private:
  void add(const std::string& from, Asks asks, const std::string& stream) {
    Connection one;
    one.socket = connect_from(from, target_.port, true);
    one.asks = asks;
    if (one.socket < 0 || (!stream.empty() && !send_all(one.socket, request(target_, stream)))) {
      fmt::print(stderr, "cannot connect: {}\n", std::strerror(errno));
      std::exit(1);
    }
    all_.push_back(std::move(one));
  }

  void ask(Connection& one, Clock::time_point now) {
    if (one.asks == Asks::once || one.waits || one.socket < 0 || now < one.next) return;
    one.asked = now;
    one.waits = send_all(one.socket, request(target_, "runs/" + target_.run + "/state"));
    one.next = std::max(one.next + std::chrono::duration_cast<Clock::duration>(pause_), now);
  }

  void read(Connection& one) {
    static char piece[1 << 16];
    const auto count = ::recv(one.socket, piece, sizeof piece, 0);
    if (count <= 0) {
      ::close(one.socket);
      one.socket = -1;
      one.waits = false;
      ++lost_;
      return;
    }
    const std::string_view text(piece, static_cast<std::size_t>(count));
    if (one.asks == Asks::once) return take(one, text);
    one.unread += text;
    const auto head = one.unread.find("\r\n\r\n");
    if (head == std::string::npos) return;
    const auto length = one.unread.find("Content-Length: ");
    const auto body = length < head ? std::strtoull(one.unread.c_str() + length + 16, nullptr, 10) : 0;
    if (one.unread.size() < head + 4 + body) return;
    if (one.asked < begin_) {
    } else if (one.unread.starts_with("HTTP/1.1 200"))
      latencies_.push_back(std::chrono::duration<double, std::milli>(Clock::now() - one.asked).count());
    else
      ++others_;
    one.unread.clear();
    one.waits = false;
  }

  /// What comes at once is one update, in however many pieces and lines.
  void take(Connection& one, std::string_view text) {
    constexpr std::chrono::milliseconds kAtOnce{25};
    const auto now = Clock::now();
    if (now < begin_) return;
    event_bytes_ += text.size();
    std::uint64_t events = 0;
    for (auto at = text.find("event: "); at != std::string_view::npos; at = text.find("event: ", at + 1)) ++events;
    if (events == 0) return;
    one.events += events;
    if (now > one.last + kAtOnce) ++one.updates;
    one.last = now;
  }

  Target target_;
  int count_;
  std::chrono::duration<double> pause_;
  Clock::time_point begin_{};
  std::vector<Connection> all_;
  std::vector<double> latencies_;  // ms
  std::uint64_t event_bytes_ = 0, others_ = 0, lost_ = 0;
};

/// Keeps `count` connections open, or tries to: one that was closed is opened again after half a second. Each asks once for /healthz.
void crowd(const Target& target, std::size_t count, std::chrono::duration<double> time) {
  struct One {
    int socket = -1;
    bool asked = false;
    Clock::time_point again{};
  };
  std::vector<One> all(count);
  std::vector<pollfd> polled(count);
  std::map<std::string, std::uint64_t> answers;
  std::size_t most = 0;
  const std::string ask = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  for (const auto end = Clock::now() + time; Clock::now() < end;) {
    for (std::size_t i = 0; i < count; ++i) {
      auto& one = all[i];
      if (one.socket < 0 && Clock::now() >= one.again) {
        one.socket = connect_from("127.0.0.1", target.port, false);
        one.asked = false;
        if (one.socket < 0) {
          ++answers[std::strerror(errno)];
          one.again = Clock::now() + std::chrono::milliseconds(500);
        }
      }
      polled[i] = {one.socket, static_cast<short>(one.asked ? POLLIN : POLLIN | POLLOUT), 0};
    }
    ::poll(polled.data(), polled.size(), 200);
    std::size_t open = 0;
    for (std::size_t i = 0; i < count; ++i) {
      auto& one = all[i];
      open += one.socket >= 0 ? 1 : 0;
      if ((polled[i].revents & POLLOUT) != 0 && !one.asked) one.asked = send_all(one.socket, ask) || true;
      if ((polled[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      char piece[2048];
      const auto got = ::recv(one.socket, piece, sizeof piece, MSG_DONTWAIT);
      if (got > 0) {
        if (got > 12 && std::string_view(piece, 5) == "HTTP/") ++answers[std::string(piece + 9, 3)];
      } else if (got == 0 || errno != EAGAIN) {
        ++answers[got == 0 ? "closed" : std::strerror(errno)];
        ::close(one.socket);
        one.socket = -1;
        one.again = Clock::now() + std::chrono::milliseconds(500);
      }
    }
    most = std::max(most, open);
  }
  fmt::print("{{\"connections_at_once\":{}", most);
  for (const auto& [what, times] : answers) fmt::print(",\"{}\":{}", what, times);
  fmt::print("}}\n");
}

}  // namespace

/// dashboards PORT TOKEN RUN SECONDS SETTLED COUNT PER_S, or crowd PORT TOKEN RUN SECONDS SETTLED COUNT
int main(int argc, char** argv) {
  if (argc < 8) return 2;
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  const Target target{static_cast<std::uint16_t>(std::atoi(argv[2])), argv[3], argv[4]};
  const double seconds = std::atof(argv[5]), settled = std::atof(argv[6]);
  const int count = std::atoi(argv[7]);
  if (std::string_view(argv[1]) == "crowd") {
    crowd(target, static_cast<std::size_t>(count), std::chrono::duration<double>(seconds));
    return 0;
  }
  Dashboards dashboards(target, count, argc > 8 ? std::atof(argv[8]) : 0);
  dashboards.look_for(std::chrono::duration<double>(seconds), std::chrono::duration<double>(settled));
  dashboards.report(seconds - settled);
}
