// Contract of transport/endpoint.hpp: thread safety, and random schedules against a model. Meant for the sanitizers.
#include <atomic>
#include <deque>
#include <latch>
#include <map>
#include <thread>

#include "core/random.hpp"
#include "endpoint_contract.hpp"

namespace troupe::transport::testing {
namespace {

class EndpointThreads : public EndpointContract {};
INSTANTIATE_TEST_SUITE_P(Endpoints, EndpointThreads, ::testing::ValuesIn(endpoint_kinds()), kind_name);

constexpr unsigned kThreads = 4;

TEST_P(EndpointThreads, ManyThreadsPostOnOnePair) {
  constexpr unsigned kEach = 50;
  Party& a = party("a", {.messages = kThreads * kEach, .bytes = 1 << 20});
  Party& b = party("b");
  const Pair pair = join(a, b);
  std::vector<Bytes> sent(kThreads * kEach), received(kThreads * kEach);
  std::vector<OperationId> sending(sent.size()), receiving(sent.size());
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    for (const bool receives : {false, true}) {
      threads.emplace_back([&, t, receives] {
        for (unsigned n = 0; n < kEach; ++n) {
          const unsigned i = t * kEach + n;
          if (receives) {
            received[i].resize(i);
            receiving[i] = b.receive(pair.a_at_b, tag(i), view(received[i]));
          } else {
            sent[i] = pattern(i, i);
            sending[i] = a.send(pair.b_at_a, tag(i), view(sent[i]));
          }
        }
      });
    }
  }
  for (std::thread& t : threads) t.join();
  for (std::size_t i = 0; i < sent.size(); ++i) {
    a.expect_done(sending[i], i);
    b.expect_done(receiving[i], i);
    EXPECT_EQ(received[i], sent[i]) << i;
  }
  const std::uint64_t n = sent.size();
  EXPECT_EQ(a->traffic(pair.b_at_a), (Traffic{.messages_sent = n, .bytes_sent = n * (n - 1) / 2}));
}

TEST_P(EndpointThreads, MembersPassAMessageAroundARing) {
  constexpr std::uint32_t kRounds = 50;
  std::vector<Party*> ring;
  std::vector<Peer> next(kThreads), previous(kThreads);
  for (unsigned i = 0; i < kThreads; ++i) ring.push_back(&party("member-" + std::to_string(i)));
  for (unsigned i = 0; i < kThreads; ++i) {
    const unsigned j = (i + 1) % kThreads;
    const Pair pair = join(*ring[i], *ring[j]);
    next[i] = pair.b_at_a;
    previous[j] = pair.a_at_b;
  }
  // Not atomic: only the messages order the increments.
  int counter = 0;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      Party& me = *ring[i];
      for (std::uint32_t round = 0; round < kRounds; ++round) {
        if (i > 0 || round > 0) me.expect_done(me.receive(previous[i], tag(0), MemoryView{}), 0);
        ++counter;
        if (i + 1 == kThreads && round + 1 == kRounds) return;
        me.expect_done(me.send(next[i], tag(0), ConstMemoryView{}), 0);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(counter, static_cast<int>(kThreads * kRounds));
}

// Each member connects to each other one, on its own thread and in its own order. Every pair is connected exactly once.
TEST_P(EndpointThreads, AllMembersConnectToAllAtOnce) {
  constexpr unsigned kMembers = 6;
  for (unsigned round = 0; round < 10; ++round) {
    std::vector<Party*> members;
    for (unsigned i = 0; i < kMembers; ++i) members.push_back(&party("member-" + std::to_string(i)));
    std::latch together(kMembers);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kMembers; ++i) {
      threads.emplace_back([&, i] {
        Party& me = *members[i];
        together.arrive_and_wait();
        std::vector<OperationId> operations;
        for (unsigned step = 1; step < kMembers; ++step) {
          const unsigned other = (i + (i % 2 == 0 ? step : kMembers - step)) % kMembers;
          const Connection connection = me->connect((*members[other])->address()).value();
          operations.push_back(connection.established);
          operations.push_back(me.send(connection.peer, tag(round), ConstMemoryView{}));
          operations.push_back(me.receive(connection.peer, tag(round), MemoryView{}));
        }
        for (const OperationId operation : operations) me.expect_done(operation, 0);
      });
    }
    for (std::thread& t : threads) t.join();
    for (Party* member : members) member->destroy();
  }
}

// One side closes while senders and receivers run: every operation that started ends exactly once, and the endpoint
// touches no memory after close() has returned (ThreadSanitizer watches the writes below).
TEST_P(EndpointThreads, CloseRacesWithTransfers) {
  for (unsigned round = 0; round < 20; ++round) {
    Party& a = party("a");
    Party& b = party("b");
    const Pair pair = join(a, b);
    std::atomic<unsigned> started_a{0}, started_b{0};
    std::latch in_full_swing(2);
    const Bytes sent = pattern(5000, round);
    std::vector<Bytes> inbox(200, Bytes(5000));
    std::thread sender([&] {
      for (unsigned i = 0; i < inbox.size(); ++i) {
        if (i == 10) in_full_swing.count_down();
        const auto operation = a->send(pair.b_at_a, tag(i), view(sent));
        if (!operation) break;
        if (*operation) ++started_a;
      }
    });
    std::thread receiver([&] {
      for (unsigned i = 0; i < inbox.size(); ++i) {
        if (i == 10) in_full_swing.count_down();
        if (!b->receive(pair.a_at_b, tag(i), view(inbox[i]))) break;
        ++started_b;
      }
    });
    in_full_swing.wait();
    if (round % 2 == 0) a->disconnect(pair.b_at_a, "test");
    b->close();
    for (Bytes& bytes : inbox) bytes.assign(bytes.size(), std::byte{0});
    sender.join();
    receiver.join();
    a->close();
    EXPECT_EQ(a.untaken(), started_a);
    EXPECT_EQ(b.untaken(), started_b);
  }
}

// One thread makes random sends, receives and cancels over few tags. The model of matching is a list of waiting
// operations.
TEST_P(EndpointThreads, RandomSchedulesAgreeWithTheModel) {
  struct Item {
    OperationId operation;
    std::size_t size;
    std::size_t index;  // of the buffer
  };
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    core::Random random(seed, core::Purpose::test, 0);
    Party& a = party("a", {.messages = 8, .bytes = 400});
    Party& b = party("b");
    const Pair pair = join(a, b);
    std::map<std::uint32_t, std::deque<Item>> sends, receives;  // waiting, by tag
    std::deque<Bytes> out, in;                                  // deque: addresses stay valid
    Traffic expected;
    std::size_t messages = 0, bytes = 0;
    const auto match = [&](std::uint32_t t) {
      if (sends[t].empty() || receives[t].empty()) return;
      const Item s = sends[t].front(), r = receives[t].front();
      sends[t].pop_front();
      receives[t].pop_front();
      messages -= 1;
      bytes -= s.size;
      if (s.size != r.size) {
        a.expect_failed(s.operation, core::Errc::corrupt, "bytes");
        b.expect_failed(r.operation, core::Errc::corrupt, "bytes");
        return;
      }
      a.expect_done(s.operation, s.size);
      b.expect_done(r.operation, r.size);
      EXPECT_EQ(in[r.index], out[s.index]);
      expected.messages_sent += 1;
      expected.bytes_sent += s.size;
    };
    for (unsigned step = 0; step < 200; ++step) {
      const auto t = static_cast<std::uint32_t>(random.below(3));
      const std::size_t size = random.below(8) == 0 ? 51 : 50 * t;  // sometimes a wrong length
      const std::uint64_t what = random.below(10);
      if (what < 4) {
        out.push_back(pattern(size, step));
        const bool credit = messages < 8 && (bytes == 0 || bytes + size <= 400);
        OperationId operation{};
        ASSERT_EQ(a.try_send(pair.b_at_a, tag(t), view(std::as_const(out.back())), &operation), credit);
        if (!credit) continue;
        messages += 1;
        bytes += size;
        sends[t].push_back({operation, size, out.size() - 1});
        match(t);
      } else if (what < 8) {
        in.emplace_back(size);
        receives[t].push_back({b.receive(pair.a_at_b, tag(t), view(in.back())), size, in.size() - 1});
        match(t);
      } else {
        const bool cancel_send = what == 8;
        auto& items = cancel_send ? sends[t] : receives[t];
        if (items.empty()) continue;
        const auto chosen = items.begin() + static_cast<std::ptrdiff_t>(random.below(items.size()));
        Party& owner = cancel_send ? a : b;
        owner->cancel(chosen->operation);
        owner.expect_cancelled(chosen->operation);
        if (cancel_send) messages -= 1, bytes -= chosen->size;
        items.erase(chosen);
      }
    }
    EXPECT_EQ(a->traffic(pair.b_at_a), expected);
    EXPECT_EQ(a.untaken() + b.untaken(), 0u);
    a->close();  // the buffers are destroyed before the endpoints
    b->close();
  }
}

}  // namespace
}  // namespace troupe::transport::testing
