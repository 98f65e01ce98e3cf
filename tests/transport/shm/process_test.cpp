// The shm endpoint between processes, and what remains when they die.
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "tests/transport/child.hpp"
#include "tests/transport/endpoint_contract.hpp"
#include "transport/exchange/reduce.hpp"
#include "transport/mapped_memory.hpp"
#include "transport/shm/endpoint.hpp"
#include "transport/shm/protocol/socket.hpp"

namespace troupe::transport::testing {
namespace {

constexpr core::Duration kProcessPatience = std::chrono::seconds{60};

std::vector<std::string> sockets;  // of all members of a test

/// An endpoint in either process. Failures throw: a child has no GoogleTest.
struct Member {
  Member(const std::string& name, bool reads_peers, Credit credit = {}) {
    endpoint = make_shm_endpoint({.name = name,
                                  .completions = CompletionQueue::create(clock).value(),
                                  .credit = credit,
                                  .shm_reads_peers = reads_peers})
                   .value();
  }
  Completion finish(OperationId operation) {
    const Deadline deadline = after(clock, kProcessPatience);
    for (;;) {
      for (auto c = completions.begin(); c != completions.end(); ++c) {
        if (c->operation != operation) continue;
        const Completion found = *c;
        completions.erase(c);
        return found;
      }
      if (!endpoint->completions().wait(completions, deadline)) throw std::runtime_error("no completion");
    }
  }
  void done(OperationId operation) {
    if (const Completion c = finish(operation); c.outcome != Outcome::done) throw std::runtime_error(c.error.message);
  }
  /// Both sides call it.
  void meet(Line& line) {
    line.say(endpoint->address().text);
    const Address remote{line.hear()};
    sockets.push_back(ShmAddress::parse(remote.text)->socket_name());
    sockets.push_back(ShmAddress::parse(endpoint->address().text)->socket_name());
    const Connection connection = endpoint->connect(remote).value();
    done(connection.established);
    peer = connection.peer;
  }
  OperationId send(Tag tag, const Bytes& bytes) { return endpoint->send(peer, tag, view(bytes)).value().value(); }
  OperationId receive(Tag tag, Bytes& bytes) { return endpoint->receive(peer, tag, view(bytes)).value(); }
  void signal(std::uint32_t number) {
    const OperationId receiving = endpoint->receive(peer, tag(number), MemoryView{}).value();
    done(endpoint->send(peer, tag(number), ConstMemoryView{}).value().value());
    done(receiving);
  }

  core::SteadyClock clock;
  std::vector<Completion> completions;
  std::unique_ptr<Endpoint> endpoint;
  Peer peer{};
};

class ShmProcess : public ::testing::TestWithParam<bool> {
 protected:
  /// All processes have ended, in whatever way: nothing of theirs may remain.
  void TearDown() override {
    EXPECT_EQ(open_descriptors(), before_);
    for (const std::string& socket : std::exchange(sockets, {})) EXPECT_FALSE(is_listed(socket));
  }
  static Member member(const std::string& name, Credit credit = {}) { return {name, GetParam(), credit}; }

 private:
  const std::size_t before_ = open_descriptors();
};
INSTANTIATE_TEST_SUITE_P(Paths, ShmProcess, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Reading" : "Window"; });

constexpr std::size_t kSizes[] = {0, 1, 8192, 8193, 262'144, 262'145, 5'000'001};

TEST_P(ShmProcess, MessagesOfAllLengthsReturnUnchanged) {
  Child child([](Line& line) {
    Member self = member("child");
    self.meet(line);
    for (const std::size_t size : kSizes) {
      Bytes bytes(size);
      self.done(self.receive(tag(1), bytes));
      self.done(self.send(tag(2), bytes));
    }
    (void)line.hear();
  });
  Member self = member("test");
  self.meet(child.line());
  for (const std::size_t size : kSizes) {
    const Bytes sent = pattern(size, 7);
    Bytes back(size);
    const OperationId receiving = self.receive(tag(2), back);
    self.done(self.send(tag(1), sent));
    self.done(receiving);
    EXPECT_EQ(back, sent) << size;
  }
}

TEST_P(ShmProcess, ManyLongMessagesBothWaysArriveWhole) {
  constexpr unsigned kMessages = 12;
  const auto exchange = [](Member& self, unsigned mine, unsigned theirs) {
    std::vector<Bytes> out;
    std::vector<Bytes> in(kMessages, Bytes(1'000'000));
    std::vector<OperationId> operations;
    for (unsigned i = 0; i < kMessages; ++i) out.push_back(pattern(1'000'000, mine + i));
    for (unsigned i = 0; i < kMessages; ++i) {
      operations.push_back(self.send(tag(i), out[i]));
      operations.push_back(self.receive(tag(kMessages - 1 - i), in[kMessages - 1 - i]));
    }
    for (const OperationId operation : operations) self.done(operation);
    for (unsigned i = 0; i < kMessages; ++i)
      if (in[i] != pattern(1'000'000, theirs + i)) throw std::runtime_error("wrong bytes");
  };
  Child child([&](Line& line) {
    Member self = member("child");
    self.meet(line);
    exchange(self, 100, 200);
    line.say("right");
    (void)line.hear();
  });
  Member self = member("test");
  self.meet(child.line());
  EXPECT_NO_THROW(exchange(self, 200, 100));
  EXPECT_EQ(child.line().hear(), "right");
}

TEST_P(ShmProcess, ArenasAreReducedInPlace) {
  constexpr std::size_t kFloats = 3'000'001;  // 12 MB: in huge pages where the host has some
  const auto reduce = [](Member& self, Line& line, std::size_t rank) {
    MappedMemory& memory = *self.endpoint->mapped_memory();
    const auto arena = std::make_shared<core::Buffer>(core::Buffer::allocate(memory.allocator(), kFloats).value());
    if (arena->view()[kFloats - 1] != 0) throw std::runtime_error("not zero");
    const Exposure exposure = memory.expose(arena).value();
    line.say(exposure.key().text);
    const Mapping other = memory.attach({line.hear()}, kFloats).value();
    std::iota(arena->view().begin(), arena->view().end(), static_cast<float>(rank));
    const std::vector<core::Span> views =
        rank == 0 ? std::vector{arena->view(), other.view()} : std::vector{other.view(), arena->view()};
    self.signal(1);
    exchange::reduce_slice(core::host_kernels(), views, rank, 0.5F);
    self.signal(2);
    for (std::size_t i = 0; i < kFloats; ++i)  // (i + i + 1) / 2, exact below 2^23
      if (arena->view()[i] != static_cast<float>(i) + 0.5F) throw std::runtime_error(fmt::format("wrong at {}", i));
    self.signal(3);
  };
  Child child([&](Line& line) {
    Member self = member("child");
    self.meet(line);
    reduce(self, line, 1);
    (void)line.hear();
  });
  Member self = member("test");
  self.meet(child.line());
  EXPECT_NO_THROW(reduce(self, child.line(), 0));
}

TEST_P(ShmProcess, AnIdlePeerThatIsKilledIsLostByName) {
  Child child([](Line& line) {
    Member self = member("worker-3");
    self.meet(line);
    (void)line.hear();
  });
  Member self = member("test");
  const std::size_t descriptors = open_descriptors();
  self.meet(child.line());
  Bytes bytes(10);
  const OperationId receiving = self.receive(tag(1), bytes);
  child.kill();  // closes the test's pipe to it
  const Completion c = self.finish(receiving);
  EXPECT_EQ(open_descriptors(), descriptors - 1);
  EXPECT_EQ(c.error.code, core::Errc::peer_lost);
  EXPECT_NE(c.error.message.find("worker-3"), std::string::npos) << c.error.message;
}

// A loader that the peer has forked still holds its sockets: the process descriptor reports the death.
TEST_P(ShmProcess, ADeadPeerIsLostAlthoughItsChildrenLive) {
  Child child([](Line& line) {
    Member self = member("worker-3");
    self.meet(line);
    const pid_t loader = ::fork();
    if (loader == 0) {
      for (;;) ::pause();
    }
    line.say(std::to_string(loader));
    (void)line.hear();
  });
  Member self = member("test");
  self.meet(child.line());
  const pid_t loader = std::stoi(child.line().hear());
  Bytes bytes(10);
  const OperationId receiving = self.receive(tag(1), bytes);
  child.kill();
  const Completion c = self.finish(receiving);
  EXPECT_EQ(c.error.code, core::Errc::peer_lost);
  const int watched = static_cast<int>(::syscall(SYS_pidfd_open, loader, 0));
  ::kill(loader, SIGKILL);
  EXPECT_TRUE(wait_readable(watched, kProcessPatience));  // its sockets close only then
  ::close(watched);
}

// The peer is killed at many moments of a transfer, sending or receiving. All operations of the survivor end, and errors name the peer.
TEST_P(ShmProcess, APeerThatIsKilledInATransferIsLost) {
  for (unsigned round = 0; round < 20; ++round) {
    const bool child_sends = round % 2 == 0;
    Child child([&](Line& line) {
      Member self = member("worker-3");
      self.meet(line);
      Bytes bytes(20'000'000);
      std::vector<OperationId> operations;
      for (unsigned i = 0; i < 3; ++i)
        operations.push_back(child_sends ? self.send(tag(i), bytes) : self.receive(tag(i), bytes));
      for (const OperationId operation : operations) self.done(operation);
      (void)line.hear();
    });
    Member self = member("test");
    self.meet(child.line());
    std::vector<Bytes> bytes(3, Bytes(20'000'000));
    std::vector<OperationId> operations;
    for (unsigned i = 0; i < 3; ++i)
      operations.push_back(child_sends ? self.receive(tag(i), bytes[i]) : self.send(tag(i), bytes[i]));
    Bytes never(1);
    operations.push_back(self.receive(tag(99), never));
    // Some rounds wait for the first or second message: the kill then meets the next one in transfer.
    for (unsigned i = 0; i < round % 3; ++i) self.done(operations[i]);
    child.kill();
    for (unsigned i = round % 3; i < operations.size(); ++i) {
      const Completion c = self.finish(operations[i]);
      if (c.outcome == Outcome::done && i < 3) continue;
      EXPECT_EQ(c.error.code, core::Errc::peer_lost);
      EXPECT_NE(c.error.message.find("worker-3"), std::string::npos) << c.error.message;
    }
  }
}

TEST_P(ShmProcess, AMappingOutlivesItsOwner) {
  Child child([](Line& line) {
    Member self = member("worker-3");
    self.meet(line);
    MappedMemory& memory = *self.endpoint->mapped_memory();
    const auto arena = std::make_shared<core::Buffer>(core::Buffer::allocate(memory.allocator(), 2'000'000).value());
    core::host_kernels().fill(arena->view(), 3);
    const Exposure exposure = memory.expose(arena).value();
    line.say(exposure.key().text);
    const Mapping theirs = memory.attach({line.hear()}, 2'000'000).value();
    theirs.view()[7] = 7;
    line.say("attached");
    (void)line.hear();
  });
  Member self = member("test");
  self.meet(child.line());
  MappedMemory& memory = *self.endpoint->mapped_memory();
  const auto arena = std::make_shared<core::Buffer>(core::Buffer::allocate(memory.allocator(), 2'000'000).value());
  const Exposure exposure = memory.expose(arena).value();
  const ArenaKey key{child.line().hear()};
  const Mapping mapping = memory.attach(key, 2'000'000).value();
  child.line().say(exposure.key().text);
  EXPECT_EQ(child.line().hear(), "attached");
  Bytes bytes(1);
  const OperationId receiving = self.receive(tag(1), bytes);
  child.kill();
  EXPECT_EQ(self.finish(receiving).error.code, core::Errc::peer_lost);
  EXPECT_EQ(memory.attach(key, 2'000'000).error().code, core::Errc::peer_lost);
  core::host_kernels().axpy(mapping.view(), 1, arena->view());
  EXPECT_EQ(mapping.view()[7], 10);
  EXPECT_EQ(mapping.view()[1'999'999], 3);
}

// A stopped receiver uses up the sender's credit and nothing more. After SIGCONT the transfers complete.
TEST_P(ShmProcess, AStoppedPeerCostsTheCreditAndGoesOn) {
  constexpr std::size_t kMessages = 600;
  Child child([](Line& line) {
    Member self = member("worker-3");
    self.meet(line);
    Bytes small(5000), large(3'000'000);
    (void)line.hear();
    for (std::size_t i = 0; i < kMessages; ++i) self.done(self.receive(tag(1), small));
    self.done(self.receive(tag(2), large));
    if (large != pattern(3'000'000, 2) || small != pattern(5000, 1)) throw std::runtime_error("wrong bytes");
    line.say("right");
    (void)line.hear();
  });
  Member self = member("test", {.messages = kMessages + 1, .bytes = 100'000'000});
  self.meet(child.line());
  child.stop();
  const Bytes small = pattern(5000, 1), large = pattern(3'000'000, 2);
  std::vector<OperationId> operations;
  for (std::size_t i = 0; i < kMessages; ++i) operations.push_back(self.send(tag(1), small));
  operations.push_back(self.send(tag(2), large));
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(self.endpoint->send(self.peer, tag(1), view(small)).value());
  child.signal(SIGCONT);
  child.line().say("receive");
  for (const OperationId operation : operations) self.done(operation);
  EXPECT_EQ(child.line().hear(), "right");
}

// Silent callers take all descriptors. The endpoint still works, and members still connect.
TEST_P(ShmProcess, ManySilentConnectionsDoNotKeepMembersOut) {
  Child child([](Line& line) {
    const rlimit few{64, 64};
    ::setrlimit(RLIMIT_NOFILE, &few);
    Member self = member("worker-3");
    self.meet(line);
    Bytes bytes(100'000);
    self.done(self.receive(tag(1), bytes));
    line.say("received");
    (void)line.hear();
  });
  Member self = member("test");
  const std::string address = child.line().hear();
  std::vector<core::FileDescriptor> flood;
  for (int i = 0; i < 300; ++i) flood.push_back(shm_dial(ShmAddress::parse(address)->socket_name()).value());
  child.line().say(self.endpoint->address().text);
  const Connection connection = self.endpoint->connect({address}).value();
  self.done(connection.established);
  self.peer = connection.peer;
  const Bytes bytes = pattern(100'000, 1);
  self.done(self.send(tag(1), bytes));
  EXPECT_EQ(child.line().hear(), "received");
}

// disconnect() fails a send that a stopped peer has not seen, at once.
TEST_P(ShmProcess, StoppedPeerCanBeDisconnected) {
  Child child([](Line& line) {
    Member self = member("worker-3");
    self.meet(line);
    Bytes bytes(3'000'000);
    const OperationId receiving = self.receive(tag(1), bytes);
    line.say("posted");
    if (self.finish(receiving).error.code != core::Errc::peer_lost) throw std::runtime_error("not lost");
    line.say("lost");
  });
  Member self = member("test");
  self.meet(child.line());
  EXPECT_EQ(child.line().hear(), "posted");
  child.stop();
  const Bytes bytes = pattern(3'000'000, 1);
  const OperationId sending = self.send(tag(1), bytes);
  self.endpoint->disconnect(self.peer, "no heartbeat");
  EXPECT_EQ(self.finish(sending).error.code, core::Errc::peer_lost);
  child.signal(SIGCONT);
  EXPECT_EQ(child.line().hear(), "lost");
}

}  // namespace
}  // namespace troupe::transport::testing
