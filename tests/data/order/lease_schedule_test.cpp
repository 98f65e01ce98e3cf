/// LeaseScheduler under random schedules: its invariants for any order of grants, completions, losses and returns.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "core/random.hpp"
#include "tests/data/order/lease_schedulers.hpp"

namespace troupe::data {
namespace {

constexpr int kSchedules = 300;

/// Drives a scheduler with random events and keeps its own record of each worker's leases.
class LeaseUsers {
 public:
  LeaseUsers(LeaseScheduler leases, std::uint32_t workers, core::Random random)
      : leases_(std::move(leases)), random_(random), held_(workers), alive_(workers, true) {}

  void grant_to_anyone() {
    const auto worker = anyone();
    const auto lease = leases_.grant(worker);
    if (!lease) return;
    EXPECT_TRUE(alive_[worker]);
    EXPECT_TRUE(indexes_.insert(lease->index).second) << "index " << lease->index << " twice";
    held_[worker].push_back(*lease);
    granted_.push_back(*lease);
  }
  void finish_one() {
    const auto worker = anyone();
    auto& leases = held_[worker];
    if (leases.empty()) return;
    const auto which = leases.begin() + static_cast<std::ptrdiff_t>(random_.below(leases.size()));
    leases_.done(worker, which->index);
    finished_.push_back(*which);
    leases.erase(which);
  }
  void lose_one() {
    const auto worker = anyone();
    if (std::count(alive_.begin(), alive_.end(), true) == 1) return;
    leases_.lost(worker);
    alive_[worker] = false;
    for (const auto& lease : held_[worker]) leases_.done(worker, lease.index);  // a message in transit: ignored
    held_[worker].clear();
  }
  void rejoin_one() {
    const auto worker = anyone();
    leases_.joined(worker);
    alive_[worker] = true;
  }
  [[nodiscard]] bool nobody_holds_any() const {
    return std::all_of(held_.begin(), held_.end(), [](const auto& leases) { return leases.empty(); });
  }
  void begin_epoch() {
    leases_.next_epoch();
    finished_.clear();
    granted_.clear();
  }

  [[nodiscard]] LeaseScheduler& leases() { return leases_; }
  [[nodiscard]] core::Random& random() { return random_; }
  [[nodiscard]] const std::vector<Lease>& granted() const { return granted_; }    // of this epoch
  [[nodiscard]] const std::vector<Lease>& finished() const { return finished_; }  // of this epoch
  [[nodiscard]] const std::vector<std::vector<Lease>>& held() const { return held_; }
  [[nodiscard]] std::uint32_t anyone() { return static_cast<std::uint32_t>(random_.below(held_.size())); }

 private:
  LeaseScheduler leases_;
  core::Random random_;
  std::vector<std::vector<Lease>> held_;  // by worker
  std::vector<bool> alive_;
  std::vector<Lease> granted_, finished_;
  std::set<std::uint64_t> indexes_;
};

std::vector<int> times_covered(const std::vector<Lease>& leases, std::int64_t size) {
  std::vector<int> times(static_cast<std::size_t>(size));
  for (const auto& lease : leases)
    for (const auto position : positions(lease, size)) ++times[static_cast<std::size_t>(position)];
  return times;
}

TEST(LeaseScheduleTest, OnDemandEqualBatchesWithLosses) {
  for (int schedule = 0; schedule < kSchedules; ++schedule) {
    SCOPED_TRACE(schedule);
    core::Random random(1, core::Purpose::test, static_cast<std::uint64_t>(schedule));
    const auto workers = static_cast<std::uint32_t>(1 + random.below(4));
    const auto batch = static_cast<std::int64_t>(1 + random.below(8)),
               size = batch + static_cast<std::int64_t>(random.below(80));
    const bool drop_tail = random.below(2) == 1;
    const std::int64_t leases = drop_tail ? size / batch : (size + batch - 1) / batch;
    LeaseUsers users(scheduler_of(on_demand_of(size, std::vector<std::int64_t>(workers, batch), 2, drop_tail)), workers,
                     random);
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (int event = 0; !users.leases().epoch_done(); ++event) {
        ASSERT_LT(event, 100'000);
        const auto kind = users.random().below(16);
        if (kind < 7)
          users.grant_to_anyone();
        else if (kind < 14)
          users.finish_one();
        else if (kind == 14)
          users.lose_one();
        else
          users.rejoin_one();

        // No sample is held or done twice: leases begin at multiples of the batch, even after a loss.
        std::set<std::int64_t> firsts;
        std::size_t live = users.finished().size();
        for (const auto& lease : users.finished()) firsts.insert(lease.first);
        const auto done = static_cast<std::int64_t>(firsts.size());
        for (const auto& held : users.held())
          for (const auto& lease : held) firsts.insert(lease.first), ++live;
        ASSERT_EQ(firsts.size(), live);
        ASSERT_EQ(users.leases().epoch_done(), done == leases);
      }
      for (const auto& lease : users.finished()) EXPECT_EQ(lease.first % batch, 0);
      EXPECT_EQ(std::ssize(users.finished()), leases);
      users.begin_epoch();
    }
    EXPECT_TRUE(users.leases().finished());
  }
}

TEST(LeaseScheduleTest, OnDemandUnequalBatchesCoverEverySampleOnce) {
  for (int schedule = 0; schedule < kSchedules; ++schedule) {
    SCOPED_TRACE(schedule);
    core::Random random(2, core::Purpose::test, static_cast<std::uint64_t>(schedule));
    std::vector<std::int64_t> batches(1 + random.below(4));
    for (auto& batch : batches) batch = static_cast<std::int64_t>(1 + random.below(9));
    const auto size = static_cast<std::int64_t>(10 + random.below(90));
    const bool losses = random.below(2) == 1;
    LeaseUsers users(scheduler_of(on_demand_of(size, batches)), static_cast<std::uint32_t>(batches.size()), random);
    for (int event = 0; !users.leases().epoch_done(); ++event) {
      ASSERT_LT(event, 100'000);
      const auto kind = users.random().below(losses ? 16 : 14);
      if (kind < 7)
        users.grant_to_anyone();
      else if (kind < 14)
        users.finish_one();
      else if (kind == 14)
        users.lose_one();
      else
        users.rejoin_one();
      ASSERT_LE(users.leases().epoch_position(), 1.0);
    }
    EXPECT_TRUE(users.nobody_holds_any());
    const auto times = times_covered(users.finished(), size);
    EXPECT_EQ(std::count(times.begin(), times.end(), 0), 0);
    if (losses) continue;
    // Without losses only the last lease wraps around: the first few positions are covered twice, the rest once.
    std::int64_t samples = 0;
    for (const auto& lease : users.finished()) samples += lease.count;
    for (std::int64_t position = 0; position < size; ++position)
      EXPECT_EQ(times[static_cast<std::size_t>(position)], position < samples - size ? 2 : 1);
  }
}

TEST(LeaseScheduleTest, SharesAreTheSameInEveryOrder) {
  for (int schedule = 0; schedule < kSchedules; ++schedule) {
    SCOPED_TRACE(schedule);
    core::Random random(3, core::Purpose::test, static_cast<std::uint64_t>(schedule));
    const auto workers = static_cast<std::uint32_t>(1 + random.below(4));
    const auto batch = static_cast<std::int64_t>(1 + random.below(6)), round = batch * workers;
    const auto size = round + static_cast<std::int64_t>(random.below(80));
    const bool drop_tail = random.below(2) == 1;
    const auto rounds = static_cast<std::uint64_t>(drop_tail ? size / round : (size + round - 1) / round);
    LeaseUsers users(scheduler_of(equal_of(size, std::vector<std::int64_t>(workers, batch), 2, drop_tail)), workers,
                     random);
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      for (int event = 0; !users.leases().epoch_done(); ++event) {
        ASSERT_LT(event, 100'000);
        if (users.random().below(2) == 0)
          users.grant_to_anyone();
        else
          users.finish_one();
      }
      EXPECT_EQ(users.finished().size(), rounds * workers);
      for (const auto& lease : users.finished()) {
        const std::uint64_t in_epoch = lease.index - epoch * rounds * workers;
        const auto of_round = static_cast<std::int64_t>(in_epoch / workers),
                   slice = static_cast<std::int64_t>(in_epoch % workers);
        EXPECT_EQ(lease.first, (of_round * round + slice * batch) % size);
        EXPECT_DOUBLE_EQ(lease.epoch_position, static_cast<double>(epoch) +
                                                   static_cast<double>(of_round * round) / static_cast<double>(size));
      }
      users.begin_epoch();
    }
  }
}

TEST(LeaseScheduleTest, RestoredSchedulerContinuesAsThePausedOne) {
  for (int schedule = 0; schedule < kSchedules; ++schedule) {
    SCOPED_TRACE(schedule);
    core::Random random(4, core::Purpose::test, static_cast<std::uint64_t>(schedule));
    const auto workers = static_cast<std::uint32_t>(1 + random.below(4));
    const auto batch = static_cast<std::int64_t>(1 + random.below(6)),
               size = batch * workers + static_cast<std::int64_t>(random.below(80));
    const bool shares = random.below(2) == 1, drop_tail = random.below(2) == 1;
    const LeaseOptions options{size, 3, std::vector<std::int64_t>(workers, batch),
                               shares ? Sharing::equal : Sharing::on_demand, drop_tail};
    LeaseUsers users(scheduler_of(options), workers, random);
    for (auto events = users.random().below(60); events > 0; --events) {
      if (users.leases().epoch_done()) users.begin_epoch();
      if (users.random().below(2) == 0)
        users.grant_to_anyone();
      else
        users.finish_one();
    }
    users.leases().pause();
    for (int event = 0; !users.leases().quiet(); ++event) {
      ASSERT_LT(event, 100'000);
      if (users.random().below(2) == 0)
        users.grant_to_anyone();
      else
        users.finish_one();
    }
    EXPECT_TRUE(users.nobody_holds_any());
    if (shares) {
      EXPECT_EQ(users.granted().size() % workers, 0u);  // rounds are whole
    }

    auto restored = scheduler_of(options);
    ASSERT_TRUE(restored.restore(users.leases().state()).has_value());
    users.leases().resume();
    // Both now get the same calls: the answers are equal until the run is finished.
    auto& original = users.leases();
    std::vector<std::pair<std::uint32_t, std::uint64_t>> out;
    for (int event = 0; !original.finished(); ++event) {
      ASSERT_LT(event, 100'000);
      if (original.epoch_done()) original.next_epoch(), restored.next_epoch();
      if (out.empty() || users.random().below(2) == 0) {
        const auto worker = users.anyone();
        const auto lease = original.grant(worker);
        ASSERT_EQ(lease, restored.grant(worker));
        if (lease) out.emplace_back(worker, lease->index);
      } else {
        const auto [worker, index] = out.back();
        out.pop_back();
        original.done(worker, index), restored.done(worker, index);
      }
      ASSERT_EQ(original.epoch_done(), restored.epoch_done());
      ASSERT_EQ(original.epoch_position(), restored.epoch_position());
      ASSERT_EQ(original.done_count(), restored.done_count());
    }
    EXPECT_TRUE(restored.finished());
  }
}

}  // namespace
}  // namespace troupe::data
