// Usage: bench_endpoints [NAME[+tls] …] [--megabytes N] [--messages N]
//
// Throughput of endpoints between two processes of this host: long messages one way, each posted before the last
// has ended. In the same run: a bare TCP socket that writes and reads the same bytes in big calls. Prints a
// line for each: GB/s, and its ratio to the socket. Default: tcp tcp+tls, 244 MB (a model of 61 million float32), 8 messages.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "transport/registry/endpoint_registry.hpp"
#include "transport/security/authority.hpp"

namespace {

using namespace troupe;
using namespace troupe::transport;

const core::SteadyClock steady;

const Tag kTag = make_tag({.kind = TagKind::push});  // one tag: messages end in order, and two buffers are enough

struct Load {
  std::size_t bytes = 244'000'000;
  unsigned messages = 8;
};

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "bench_endpoints: %s\n", why.c_str());
  std::exit(1);
}
template <class T>
T must(core::Result<T> result) {
  if (!result) give_up(result.error().message);
  return std::move(*result);
}

/// A line of text each way between parent and child.
struct Line {
  int in, out;
  void say(const std::string& text) const {
    const std::string line = text + "\n";
    if (::write(out, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      give_up("the other process is gone");
  }
  [[nodiscard]] std::string hear() const {
    std::string text;
    for (char c = 0; ::read(in, &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }
};

void wait_all(CompletionQueue& queue, unsigned count) {
  std::vector<Completion> completions;
  while (completions.size() < count)
    if (const auto waited = queue.wait(completions, after(steady, std::chrono::minutes{5})); !waited)
      give_up(waited.error().message);
  for (const Completion& c : completions)
    if (c.outcome != Outcome::done) give_up(c.error.message);
}

/// One side; returns the seconds for all messages but the first, which is a warm-up.
double transfer(const std::string& name, const security::TlsFiles& tls, const Line& line, bool sends, Load load) {
  const auto queue = must(CompletionQueue::create(steady));
  EndpointOptions options;
  options.name = sends ? "sender" : "receiver";
  options.completions = queue;
  options.credit = {.messages = 4, .bytes = 4 * load.bytes};
  options.tcp.tls = tls;
  const auto endpoint = must(make_endpoint(name, options));
  line.say(endpoint->address().text);
  const Peer peer = must(endpoint->connect({line.hear()})).peer;
  wait_all(*queue, 1);
  std::vector<std::byte> memory[2] = {std::vector<std::byte>(load.bytes), std::vector<std::byte>(load.bytes)};
  const auto post = [&](unsigned i) {
    auto& m = memory[i % 2];
    if (sends) {
      if (!must(endpoint->send(peer, kTag, {m.data(), m.size()}))) give_up("no credit");
    } else {
      (void)must(endpoint->receive(peer, kTag, {m.data(), m.size()}));
    }
  };
  post(0);
  wait_all(*queue, 1);
  const core::Duration begin = steady.now();
  post(1);
  for (unsigned i = 2; i <= load.messages; ++i) {
    post(i);
    wait_all(*queue, 1);
  }
  wait_all(*queue, 1);
  const double seconds = core::seconds(steady.now() - begin);
  line.say("done");
  (void)line.hear();  // neither side closes before both have finished
  return seconds;
}

/// The same bytes over a bare socket.
double bare_socket(const Line& line, bool sends, Load load) {
  int connected = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  socklen_t size = sizeof at;
  if (sends) {
    at.sin_port = htons(static_cast<std::uint16_t>(std::stoul(line.hear())));
    if (::connect(connected, address, size) != 0) give_up("cannot connect");
  } else {
    const int listening = connected;
    if (::bind(listening, address, size) != 0 || ::listen(listening, 1) != 0) give_up("cannot listen");
    ::getsockname(listening, address, &size);
    line.say(std::to_string(ntohs(at.sin_port)));
    connected = ::accept(listening, nullptr, nullptr);
    ::close(listening);
  }
  std::vector<std::byte> memory(load.bytes);
  const auto all = [&](unsigned messages) {
    for (unsigned i = 0; i < messages; ++i)
      for (std::size_t done = 0; done < memory.size();) {
        const std::size_t rest = std::min<std::size_t>(memory.size() - done, 1 << 20);
        const ssize_t moved = sends ? ::send(connected, memory.data() + done, rest, MSG_NOSIGNAL)
                                    : ::recv(connected, memory.data() + done, rest, 0);
        if (moved <= 0) give_up("the socket broke");
        done += static_cast<std::size_t>(moved);
      }
  };
  all(1);
  const core::Duration begin = steady.now();
  all(load.messages);
  const double seconds = core::seconds(steady.now() - begin);
  line.say("done");
  (void)line.hear();
  ::close(connected);
  return seconds;
}

/// Runs `side` in two processes; returns the receiver's (this process's) measurement.
template <class Side>
double in_two_processes(Side side) {
  int there[2], back[2];
  if (::pipe(there) != 0 || ::pipe(back) != 0) give_up("no pipes");
  const pid_t child = ::fork();
  if (child < 0) give_up("cannot fork");
  if (child == 0) {
    (void)side(Line{there[0], back[1]}, true);
    std::_Exit(0);
  }
  const double seconds = side(Line{back[0], there[1]}, false);
  ::waitpid(child, nullptr, 0);
  for (const int fd : {there[0], there[1], back[0], back[1]}) ::close(fd);
  return seconds;
}

}  // namespace

int main(int argc, char** argv) {
  Load load;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--megabytes" && i + 1 < argc)
      load.bytes = std::stoul(argv[++i]) * 1'000'000;
    else if (argument == "--messages" && i + 1 < argc)
      load.messages = static_cast<unsigned>(std::stoul(argv[++i]));
    else if (argument.starts_with("-"))
      give_up("unknown argument " + argument);
    else
      names.push_back(argument);
  }
  if (names.empty()) names = {"tcp", "tcp+tls"};
  std::error_code error;
  std::string directory = (std::filesystem::temp_directory_path(error) / "troupe-bench-XXXXXX").string();
  if (error || ::mkdtemp(directory.data()) == nullptr) give_up("no temporary directory");
  const auto gb_per_s = [&](double seconds) { return static_cast<double>(load.bytes) * load.messages / seconds / 1e9; };
  const double bare =
      gb_per_s(in_two_processes([&](const Line& l, bool sends) { return bare_socket(l, sends, load); }));
  std::printf("%-12s %7.3f GB/s\n", "bare socket", bare);
  for (const std::string& name : names) {
    const auto plus = name.find("+tls");
    security::TlsFiles tls;
    if (plus != std::string::npos) {
      if (const auto made = security::create_authority(directory, std::time(nullptr), true); !made)
        give_up(made.error().message);
      tls = must(security::create_node(directory, "bench", {}, std::time(nullptr), true));
    }
    const double got = gb_per_s(in_two_processes(
        [&](const Line& l, bool sends) { return transfer(name.substr(0, plus), tls, l, sends, load); }));
    std::printf("%-12s %7.3f GB/s   %.2f of the bare socket\n", name.c_str(), got, got / bare);
    std::fflush(stdout);
  }
  std::filesystem::remove_all(directory, error);
  return 0;
}
