// Two exchangers that map each other's device memory, of which one ends: its memory is freed only when the other one has unmapped it. The device is
// the host's stand-in, where freed memory stays mapped; so mappings are counted, as CUDA's driver would have to. The test plays the members.
#include <map>
#include <mutex>

#include <gtest/gtest.h>

#include "actors/control/system.hpp"
#include "actors/exchanger/exchanger.hpp"
#include "tests/gpu/arenas/device_runs.hpp"
#include "tests/wait.hpp"

namespace troupe::actors {
namespace {

constexpr std::size_t kLentFloats = 1024;
constexpr std::chrono::seconds kWait = tests::kPatience;

/// Mappings of all memory, by handle.
struct Mappings {
  std::mutex mutex;
  std::map<std::string, int> open;
  std::size_t wrongs = 0;  // handles whose memory was freed while it was mapped
};

class CountedSharing final : public core::DeviceSharing {
 public:
  CountedSharing(std::shared_ptr<core::DeviceSharing> inner, std::shared_ptr<Mappings> all)
      : inner_(std::move(inner)), all_(std::move(all)) {}
  CountedSharing(const CountedSharing&) = delete;
  CountedSharing& operator=(const CountedSharing&) = delete;
  ~CountedSharing() override {
    const std::lock_guard lock(all_->mutex);
    for (const auto& handle : handles_)
      if (all_->open[handle] > 0) ++all_->wrongs;
  }
  [[nodiscard]] core::Allocator& memory() noexcept override { return inner_->memory(); }
  [[nodiscard]] core::Result<std::string> handle_of(void* allocation) override {
    auto handle = inner_->handle_of(allocation);
    const std::lock_guard lock(all_->mutex);
    if (handle) handles_.push_back(*handle);
    return handle;
  }
  [[nodiscard]] core::Result<std::shared_ptr<void>> open(const std::string& handle, std::size_t bytes) override {
    auto opened = inner_->open(handle, bytes);
    if (!opened) return opened;
    const std::lock_guard lock(all_->mutex);
    ++all_->open[handle];
    return std::shared_ptr<void>(opened->get(), [all = all_, handle, mapped = *opened](void*) {
      const std::lock_guard lock(all->mutex);
      --all->open[handle];
    });
  }

 private:
  const std::shared_ptr<core::DeviceSharing> inner_;
  const std::shared_ptr<Mappings> all_;
  std::vector<std::string> handles_;  // guarded by all_->mutex
};

/// Site 0 has the server, site 1 the worker.
class SitesThatPart : public ::testing::Test {
 protected:
  SitesThatPart() {
    auto& backend = tests::resident();
    ActorDirectory actors;
    actors.coordinator = caf::actor_cast<CoordinatorActor>(self_);
    actors.recorder = caf::actor_cast<RecorderActor>(self_);
    actors.workers.assign(1, caf::actor_cast<WorkerActor>(self_));
    actors.loaders.assign(1, caf::actor_cast<LoaderActor>(self_));
    actors.servers.assign(1, caf::actor_cast<ServerActor>(self_));
    actors.worker_sites = {1};
    actors.server_sites = {0};
    SiteAddresses addresses;
    for (std::uint32_t site = 0; site < 2; ++site) {
      auto sharing = std::make_shared<CountedSharing>(backend.sharing_for(backend.arenas()).value(), mappings_);
      shared_[site] = sharing;
      ExchangerSetup setup{.site = site, .most_floats = kLentFloats, .kernels = &backend.kernels_for(backend.arenas())};
      setup.exchange.endpoint = "tcp";
      setup.exchange.worker_sites = actors.worker_sites;
      setup.exchange.server_sites = actors.server_sites;
      setup.exchange.on_devices = true;
      setup.memory = &backend.arenas();
      setup.copier = backend.copier_for(backend.arenas()).value();
      setup.mappable.sharing = std::move(sharing);
      setup.clock = &clock_;
      exchangers_.push_back(system_.spawn<caf::detached>(exchanger, std::move(setup)));
      self_->request(exchangers_.back(), kWait, Prepare{})
          .receive(
              [&](const SiteAddress& address, const SiteMemory& memory) {
                addresses.texts.push_back(address.text);
                if (site == 1)
                  vector_ = std::make_shared<core::Buffer>(core::Buffer::allocate(*memory.arenas, kLentFloats).value());
              },
              [](const caf::error& error) { throw std::runtime_error(caf::to_string(error)); });
    }
    for (const auto& exchanger : exchangers_) self_->send(exchanger, addresses);
    for (const auto& exchanger : exchangers_) {
      self_->send(exchanger, ArenaPacking{nullptr, kLentFloats, 0, 1000, false});
      self_
          ->request(exchanger, kWait,
                    MeasureOrder{.worker_sites = {}, .site_hosts = {}, .floats = {}, .algorithms = {"asa"}})
          .receive([](const Measured& measured) { EXPECT_EQ(measured.error, "") << "they map each other's memory"; },
                   [](const caf::error& error) { throw std::runtime_error(caf::to_string(error)); });
      self_->send(exchanger, actors);
      self_->send(exchanger, SiteBegun{});
    }
  }
  ~SitesThatPart() override {
    vector_.reset();
    lent_ = {};
    for (const auto& exchanger : exchangers_) self_->send(exchanger, Halt{});
    for (const auto& exchanger : exchangers_) self_->wait_for(exchanger);
    EXPECT_EQ(wrongs(), 0U);
  }

  SitesThatPart(const SitesThatPart&) = delete;
  SitesThatPart& operator=(const SitesThatPart&) = delete;

  /// The worker pushes; the server has the vector now.
  void push() {
    const strategies::Request request{.worker = 0,
                                      .exchange = ++exchange_,
                                      .kind = strategies::Transfer::push_pull,
                                      .clock = exchange_,
                                      .epoch = 0.5,
                                      .lr = 0.1F};
    self_->send(exchangers_[1], ShardMessage{0, request, core::Rounding::both}, BorrowedView{vector_->view(), vector_});
    self_->receive([&](const ShardMessage& /*message*/, const BorrowedView& slice) { lent_ = slice; },
                   caf::after(kWait) >> [] { throw std::runtime_error("no push came"); });
  }
  void answer() {
    lent_ = {};
    ShardAnswer answer;
    answer.reply.worker = 0;
    answer.reply.exchange = exchange_;
    self_->send(exchangers_[0], answer);
  }
  void answered() {
    self_->receive([](const ShardAnswer& /*answer*/) {},
                   caf::after(kWait) >> [] { throw std::runtime_error("no answer came"); });
  }
  /// Ends site 1, as its owner does when its exchanger has ended.
  void end_worker() {
    self_->wait_for(exchangers_[1]);
    vector_.reset();
  }
  [[nodiscard]] bool is_freed() {
    return tests::eventually([&] { return shared_[1].expired(); });
  }
  [[nodiscard]] int mapped() {
    const std::lock_guard lock(mappings_->mutex);
    int all = 0;
    for (const auto& [handle, count] : mappings_->open) all += count;
    return all;
  }
  [[nodiscard]] std::size_t wrongs() {
    const std::lock_guard lock(mappings_->mutex);
    return mappings_->wrongs;
  }

  std::shared_ptr<Mappings> mappings_ = std::make_shared<Mappings>();
  core::SteadyClock clock_;
  SystemConfig config_;
  caf::actor_system system_{config_};
  caf::scoped_actor self_{system_};
  std::vector<ExchangerActor> exchangers_;
  std::weak_ptr<core::DeviceSharing> shared_[2];  // by site
  std::shared_ptr<core::Buffer> vector_;          // of the worker
  BorrowedView lent_;                             // at the server
  std::uint64_t exchange_ = 0;
};

TEST_F(SitesThatPart, AnIdleSiteFreesItsMemoryWhenTheOtherHasUnmappedIt) {
  push();
  EXPECT_EQ(mapped(), 3) << "two trials and the worker's vector";
  answer();
  answered();
  self_->send(exchangers_[1], Halt{});
  end_worker();
  EXPECT_TRUE(is_freed());
  EXPECT_EQ(wrongs(), 0U);
  EXPECT_EQ(mapped(), 0);
}

TEST_F(SitesThatPart, ASiteWaitsForTheServerThatComputesWithItsVector) {
  push();
  self_->send(exchangers_[1], Halt{});
  answer();
  end_worker();
  EXPECT_TRUE(is_freed());
  EXPECT_EQ(wrongs(), 0U);
}

// A server whose worker's site ends drops the worker's push when it hears of it: no answer tells the exchanger.
TEST_F(SitesThatPart, AVectorThatIsDroppedWithoutAnAnswerIsLetGo) {
  push();
  self_->send(exchangers_[0], MembershipNews{2, {}});
  lent_ = {};
  self_->receive([](const SiteLost& /*loss*/) {}, caf::after(kWait) >> [] { ADD_FAILURE() << "it was not left"; });
  self_->send(exchangers_[1], Halt{});
  end_worker();
  EXPECT_TRUE(tests::eventually([&] { return mapped() == 0; }));
}

TEST_F(SitesThatPart, ASiteThatIsLeftHasHeardTheFarewell) {
  push();
  answer();
  answered();
  self_->send(exchangers_[0], MembershipNews{2, {}});
  self_->receive([](const SiteLost& loss) { EXPECT_EQ(loss.lost, 0U); },
                 caf::after(kWait) >> [] { ADD_FAILURE() << "it was not left"; });
  self_->send(exchangers_[1], Halt{});
  end_worker();
  EXPECT_TRUE(is_freed());
  EXPECT_EQ(wrongs(), 0U);
}

TEST_F(SitesThatPart, MemoryThatTheOtherKeepsInUseIsNotFreed) {
  push();
  self_->send(exchangers_[1], Halt{});
  end_worker();  // at its deadline
  EXPECT_FALSE(shared_[1].expired());
  EXPECT_GT(mapped(), 0);
}

TEST_F(SitesThatPart, MemoryIsKeptForATimeWhenTheOtherWasLostWithoutAFarewell) {
  push();
  self_->send_exit(exchangers_[0], caf::exit_reason::kill);
  self_->receive([](const SiteLost& loss) { EXPECT_EQ(loss.lost, 0U); },
                 caf::after(kWait) >> [] { ADD_FAILURE() << "no loss was reported"; });
  self_->send(exchangers_[1], Halt{});
  end_worker();
  EXPECT_FALSE(shared_[1].expired()) << "the server may compute with it still";
}

}  // namespace
}  // namespace troupe::actors
