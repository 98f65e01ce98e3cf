// The cost of an empty message between two processes, there and back, over the shm endpoint; compared with a byte through a bare
// Unix-domain socket between the same processes, which is two system calls and one switch each way. Rounds alternate; medians in µs.
//
//   bench_round_trip [ROUNDS]
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "apps/bench/rank_processes.hpp"
#include "transport/shm/endpoint.hpp"

namespace {

using namespace troupe;
using namespace troupe::transport;

constexpr core::Duration kPatience = std::chrono::minutes{1};
constexpr int kBlock = 200;  // consecutive round trips of one kind

struct Member {
  core::SteadyClock clock;
  std::unique_ptr<Endpoint> endpoint;
  Peer peer{};
  std::vector<Completion> completions;

  void wait_for(std::size_t count) {
    for (completions.clear(); completions.size() < count;)
      if (!endpoint->completions().wait(completions, after(clock, kPatience)))
        throw std::runtime_error("no completion");
    for (const Completion& c : completions)
      if (c.outcome != Outcome::done) throw std::runtime_error(c.error.message);
  }
  void there(std::uint32_t round) {
    if (!endpoint->send(peer, Tag{round}, ConstMemoryView{}).value()) throw std::runtime_error("no credit");
  }
  void back(std::uint32_t round) { (void)endpoint->receive(peer, Tag{round}, MemoryView{}).value(); }
};

core::Result<void> run(std::size_t rank, RankLine& line, int socket, int blocks) {
  Member self;
  self.endpoint = make_shm_endpoint({.name = fmt::format("rank {}", rank),
                                     .completions = CompletionQueue::create(self.clock).value()})
                      .value();
  (void)line.say(self.endpoint->address().text);
  std::array<Address, 2> addresses;
  for (Address& address : addresses) address.text = line.receive(kPatience).value();
  self.peer = self.endpoint->connect(addresses[1 - rank]).value().peer;
  self.wait_for(1);
  std::vector<double> of_endpoint;
  std::vector<double> of_socket;
  char byte = 0;
  std::uint32_t number = 0;
  for (int block = 0; block < blocks; ++block) {
    for (int i = 0; i < kBlock; ++i, ++number) {
      const auto begin = self.clock.now();
      self.back(number);
      if (rank == 0) self.there(number);
      self.wait_for(rank == 0 ? 2 : 1);
      if (rank == 1) {
        self.there(number);
        self.wait_for(1);
      }
      of_endpoint.push_back(core::seconds(self.clock.now() - begin) * 1e6);
    }
    for (int i = 0; i < kBlock; ++i) {
      const auto begin = self.clock.now();
      if (rank == 0 && ::write(socket, &byte, 1) != 1) throw std::runtime_error("write");
      if (::read(socket, &byte, 1) != 1) throw std::runtime_error("read");
      if (rank == 1 && ::write(socket, &byte, 1) != 1) throw std::runtime_error("write");
      of_socket.push_back(core::seconds(self.clock.now() - begin) * 1e6);
    }
  }
  std::ranges::sort(of_endpoint);
  std::ranges::sort(of_socket);
  const double endpoint = of_endpoint[of_endpoint.size() / 2];
  const double bare = of_socket[of_socket.size() / 2];
  auto said =
      line.say(fmt::format("shm endpoint {:.1f} us (best {:.1f}), bare socket {:.1f} us (best {:.1f}), ratio {:.2f}",
                           endpoint, of_endpoint.front(), bare, of_socket.front(), endpoint / bare));
  (void)line.receive(kPatience);
  return said;
}

}  // namespace

int main(int argc, char** argv) {
  const int blocks = std::max(1, (argc > 1 ? std::atoi(argv[1]) : 20'000) / kBlock);
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) < 0) return 74;
  RankProcesses processes;
  const auto started =
      processes.start(2, [&](std::size_t rank, RankLine& line) { return run(rank, line, pair[rank], blocks); });
  if (!started) return 74;
  const auto addresses = processes.gather(kPatience);
  if (!addresses || !processes.spread(*addresses)) return 74;
  const auto lines = processes.gather(std::chrono::minutes{10});
  if (!lines) {
    fmt::print(stderr, "{}\n", lines.error().message);
    return core::exit_code(lines.error().code);
  }
  fmt::print("{}\n", (*lines)[0]);
}
