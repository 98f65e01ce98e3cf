// In a steady state an exchange between two sites allocates no vector: its memory is that of the exchanges before it. And a start state for
// which there is no memory is refused.
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "actors/control/system.hpp"
#include "actors/exchanger/exchanger.hpp"
#include "core/buffer.hpp"
#include "core/kernels.hpp"

namespace {

constexpr std::size_t kVector = 100'000;                     // floats
constexpr std::size_t kLarge = kVector * sizeof(float) / 8;  // bytes; everything but vectors is smaller

std::atomic<bool> counting{false};
std::atomic<long> large{0};
std::atomic<long> all{0};
std::atomic<std::size_t> too_large{0};  // so many bytes and more are refused; 0: none

[[maybe_unused]] bool is_refused(std::size_t bytes) {
  const auto least = too_large.load(std::memory_order_relaxed);
  return least > 0 && bytes >= least;
}

[[maybe_unused]] void note(std::size_t bytes) {
  if (!counting.load(std::memory_order_relaxed)) return;
  ++all;
  if (bytes >= kLarge) ++large;
}

}  // namespace

// Sanitizers replace the allocator; with them only the exchanges run.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr bool kInjects = true;
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* malloc(std::size_t bytes) {
  note(bytes);
  if (is_refused(bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  note(count * bytes);
  return __libc_calloc(count, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  note(bytes);
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}
}
#else
constexpr bool kInjects = false;
#endif

namespace troupe::actors {
namespace {

constexpr std::chrono::seconds kPatience{60};

/// Site 0 has the server and the start state, site 1 the worker. The test plays both members.
class TwoSites {
 protected:
  explicit TwoSites(std::optional<core::HalfKind> wire, const StartPayload& start = {}) {
    ActorDirectory actors;
    actors.coordinator = caf::actor_cast<CoordinatorActor>(self_);
    actors.recorder = caf::actor_cast<RecorderActor>(self_);
    actors.workers.assign(1, caf::actor_cast<WorkerActor>(self_));
    actors.loaders.assign(1, caf::actor_cast<LoaderActor>(self_));
    actors.servers.assign(1, caf::actor_cast<ServerActor>(self_));
    actors.worker_sites = {1};
    actors.server_sites = {0};
    // Every tenth float is padding.
    std::vector<float> marks(kVector, 1);
    for (std::size_t i = 9; i < kVector; i += 10) marks[i] = 0;
    const ArenaPacking arena{std::make_shared<const exchange::Packing>(marks), kVector, 0, 1000, false};
    SiteAddresses addresses;
    for (std::uint32_t site = 0; site < 2; ++site) {
      ExchangerSetup setup{.site = site, .most_floats = kVector, .kernels = &core::host_kernels()};
      setup.exchange.endpoint = "tcp";
      setup.exchange.wire = wire;
      if (site == 0) setup.start = start;
      setup.memory = &memory_;
      setup.clock = &clock_;
      exchangers_.push_back(system_.spawn<caf::detached>(exchanger, std::move(setup)));
      self_->request(exchangers_.back(), kPatience, Prepare{})
          .receive([&](const SiteAddress& address, const SiteMemory&) { addresses.texts.push_back(address.text); },
                   [](const caf::error& error) { throw std::runtime_error(caf::to_string(error)); });
    }
    for (const auto& exchanger : exchangers_) {
      self_->send(exchanger, addresses);
      self_->send(exchanger, arena);
      self_->send(exchanger, actors);
      self_->send(exchanger, SiteBegun{});
    }
    vector_ = std::make_shared<core::Buffer>(core::Buffer::allocate(memory_, kVector).value());
    for (std::size_t i = 0; i < kVector; ++i) vector_->data()[i] = marks[i];
  }
  ~TwoSites() {
    for (const auto& exchanger : exchangers_) self_->send(exchanger, Halt{});
    for (const auto& exchanger : exchangers_) self_->wait_for(exchanger);
  }

  TwoSites(const TwoSites&) = delete;
  TwoSites& operator=(const TwoSites&) = delete;

  /// One push_pull, to which the server adds one.
  void exchange(std::uint64_t number) {
    const strategies::Request request{.worker = 0,
                                      .exchange = number,
                                      .kind = strategies::Transfer::push_pull,
                                      .clock = number,
                                      .epoch = 0.5,
                                      .lr = 0.1F};
    self_->send(exchangers_[1], ShardMessage{0, request, core::Rounding::both}, BorrowedView{vector_->view(), vector_});
    bool answered = false;
    self_->receive_while([&] { return !answered; })(
        [&](const ShardMessage& message, const BorrowedView& slice) {
          padding_ += slice.data[9];
          for (std::size_t i = 0; i < kVector; ++i) slice.data[i] += 1;
          ShardAnswer answer;
          answer.reply.worker = message.request.worker;
          answer.reply.exchange = message.request.exchange;
          self_->send(exchangers_[0], answer);
        },
        [&](const ShardAnswer& answer) {
          EXPECT_EQ(answer.reply.exchange, number);
          answered = true;
        },
        [](const TransferNews&) {}, [](const RunError& error) { throw std::runtime_error(error.text); },
        caf::after(kPatience) >> [] { throw std::runtime_error("no answer"); });
  }

  core::SteadyClock clock_;
  core::HostAllocator memory_;
  SystemConfig config_;
  caf::actor_system system_{config_};
  caf::scoped_actor self_{system_};
  std::vector<ExchangerActor> exchangers_;
  std::shared_ptr<core::Buffer> vector_;
  float padding_ = 0;
};

class SteadyExchanges : public ::testing::TestWithParam<std::optional<core::HalfKind>>, protected TwoSites {
 protected:
  SteadyExchanges() : TwoSites(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(Wires, SteadyExchanges, ::testing::Values(std::nullopt, std::optional(core::HalfKind::bf16)));

TEST_P(SteadyExchanges, AllocateNoVector) {
  constexpr std::uint64_t kWarmUp = 10, kExchanges = 100;
  std::uint64_t number = 0;
  while (number < kWarmUp) exchange(++number);
  large = all = 0;
  counting = true;
  while (number < kWarmUp + kExchanges) exchange(++number);
  counting = false;
  // An exchange may begin before the last one's memory is free: then there are two of a kind from now on.
  EXPECT_LE(large, 3);
  EXPECT_LT(all / static_cast<long>(kExchanges), 200) << "small ones, of both sites";
  RecordProperty("allocations_per_exchange", static_cast<int>(all / static_cast<long>(kExchanges)));
  EXPECT_EQ(padding_, 0) << "what the server did to the padding came back to it";
  EXPECT_EQ(vector_->data()[0], 1 + static_cast<float>(number));
  EXPECT_EQ(vector_->data()[9], 0);
}

/// Larger than everything else here, and than a piece of it.
constexpr std::size_t kStartBytes = std::size_t{8} << 20;

class StartStates : public ::testing::Test, protected TwoSites {
 protected:
  StartStates() : TwoSites(std::nullopt, StartPayload{file()}) {}
  ~StartStates() override { too_large = 0; }
  static std::shared_ptr<const std::vector<std::byte>> file() {
    auto bytes = std::make_shared<std::vector<std::byte>>(kStartBytes);
    for (std::size_t i = 0; i < bytes->size(); ++i) (*bytes)[i] = static_cast<std::byte>(i * 7);
    return bytes;
  }
  /// What site 1 has fetched; empty: `why` it has not.
  StartPayload fetch(std::string& why) {
    StartPayload fetched;
    self_->request(exchangers_[1], kPatience, StartOrder{})
        .receive([&](const StartPayload& payload) { fetched = payload; },
                 [&](const caf::error& error) { why = caf::to_string(error); });
    return fetched;
  }
};

TEST_F(StartStates, ThatDoNotFitIntoMemoryAreRefusedAndTheSiteGoesOn) {
  if (!kInjects) GTEST_SKIP() << "a sanitizer has replaced the allocator";
  std::string why;
  too_large = kStartBytes;
  EXPECT_EQ(fetch(why).file, nullptr);
  EXPECT_NE(why.find("there is no memory for the 8388608 bytes of the start state"), std::string::npos) << why;
  too_large = 0;
  why.clear();
  const auto again = fetch(why).file;
  ASSERT_NE(again, nullptr) << why;
  EXPECT_EQ(*again, *file());
  exchange(1);
  EXPECT_EQ(vector_->data()[0], 2);
}

}  // namespace
}  // namespace troupe::actors
