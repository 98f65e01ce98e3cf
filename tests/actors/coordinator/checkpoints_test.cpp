// Checkpoints on a slow disk: what continues while one is written, and what waits.
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string_view>

#include <gtest/gtest.h>

#include "actors/recorder/recorder.hpp"
#include "core/journal.hpp"
#include "tests/actors/coordinator/lone_coordinator.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using Options = std::vector<std::string>;

/// One worker; a checkpoint every two steps.
Options every_other_step(const Options& more = {}) {
  Options options{"cluster.workers=1", "run.checkpoint_every=2 steps"};
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

/// Trains until a checkpoint is due and takes its snapshots. The worker then has one unanswered request for a batch.
std::optional<LoneCoordinator::Writing> train_until_saved(LoneCoordinator& coordinator) {
  for (auto leases = coordinator.ask_for_one(); !leases.empty(); leases = coordinator.ask_for_one())
    coordinator.train(leases);
  coordinator.take_snapshots();
  return coordinator.order_to_write();
}

TEST(Checkpoints, TrainingBeginsWhenTheFirstIsOnDisk) {
  LoneCoordinator coordinator(every_other_step());
  coordinator.begin();
  coordinator.take_snapshots();
  auto first = coordinator.order_to_write();
  EXPECT_TRUE(coordinator.ask_for_one().empty());
  coordinator.write(first);
  EXPECT_EQ(coordinator.granted().size(), 1U);
}

TEST(Checkpoints, TrainingGoesOnDuringAWrite) {
  LoneCoordinator coordinator(every_other_step());
  coordinator.begin_training();
  auto writing = train_until_saved(coordinator);
  ASSERT_TRUE(writing);
  EXPECT_EQ(coordinator.written_step, 2U);
  // More steps than a period: the next checkpoint is due long before this one is written.
  for (int step = 0; step < 5; ++step) {
    const auto leases = coordinator.granted();
    ASSERT_EQ(leases.size(), 1U) << "training stands still";
    coordinator.train(leases);
    coordinator.tell(LeaseRequest{0, 1});
  }
  EXPECT_EQ(coordinator.take_snapshots(), 0);
  // Once this one is written, the coordinator takes the overdue checkpoint, once, of the current model.
  coordinator.write(writing);
  coordinator.train(coordinator.granted());
  EXPECT_GT(coordinator.take_snapshots(), 0);
  writing = coordinator.order_to_write();
  ASSERT_TRUE(writing);
  EXPECT_EQ(coordinator.written_step, 8U);
  coordinator.write(writing);
  EXPECT_EQ(coordinator.take_snapshots(), 0);
}

TEST(Checkpoints, EpochThatEndsDuringAWriteIsSavedAfterwards) {
  LoneCoordinator coordinator({"cluster.workers=1", "run.epochs=4", "data.train_samples=40"});
  coordinator.begin_training();
  const auto train_epoch = [&] {
    for (int step = 0; step < 2; ++step) coordinator.train(coordinator.ask_for_one());
    coordinator.take_snapshots();
    EXPECT_TRUE(
        coordinator.answered(coordinator.evaluator, [](const EvaluateOrder&, const BorrowedView&, const BorrowedView&) {
          return Evaluated{.test = {.samples = 1}};
        }));
    coordinator.take_snapshots();
  };
  train_epoch();
  auto writing = coordinator.order_to_write();
  EXPECT_EQ(coordinator.written_step, 2U);
  train_epoch();
  EXPECT_FALSE(coordinator.order_to_write());
  coordinator.train(coordinator.ask_for_one());  // the third epoch has begun
  coordinator.write(writing);
  coordinator.take_snapshots();
  writing = coordinator.order_to_write();
  ASSERT_TRUE(writing);
  EXPECT_EQ(coordinator.written_step, 5U);
  coordinator.write(writing);
}

TEST(Checkpoints, TheEndWaitsForWritesUnderWay) {
  LoneCoordinator coordinator(every_other_step());
  coordinator.begin_training();
  auto writing = train_until_saved(coordinator);
  caf::scoped_actor self(coordinator.system());
  self->send(coordinator.actor(), AwaitEnd{});
  coordinator.tell(Interrupt{});
  coordinator.train(coordinator.granted());
  ASSERT_TRUE(coordinator.answered(*coordinator.workers[0], [](const Dismissal&) { return Dismissed{}; }));
  EXPECT_GT(coordinator.take_snapshots(), 0);
  EXPECT_FALSE(coordinator.order_to_write()) << "two at a time";
  coordinator.write(writing);
  coordinator.take_snapshots();
  writing = coordinator.order_to_write();
  ASSERT_TRUE(writing);
  EXPECT_EQ(coordinator.written_step, 3U);
  EXPECT_FALSE(LoneCoordinator::heard(self, [](const RunEnd&) {})) << "it has ended";
  coordinator.write(writing);
  EXPECT_TRUE(LoneCoordinator::heard(
      self, [](const RunEnd& reached) { EXPECT_EQ(reached.error.code, core::Errc::interrupted); }));
}

TEST(Checkpoints, FailedWriteIsAWarningAndAtTheEndAnError) {
  const CheckpointWritten full{.path = {}, .error = "the disk is full", .code = core::Errc::no_space};
  LoneCoordinator coordinator(every_other_step());
  coordinator.begin_training();
  auto writing = train_until_saved(coordinator);
  coordinator.write(writing, full);
  EXPECT_TRUE(LoneCoordinator::heard(coordinator.recorder, [](const Note& note) {
    EXPECT_EQ(note.level, Note::Level::warning);
    EXPECT_NE(note.text.find("the disk is full"), std::string::npos) << note.text;
  }));
  caf::scoped_actor self(coordinator.system());
  self->send(coordinator.actor(), AwaitEnd{});
  coordinator.tell(Interrupt{});
  coordinator.train(coordinator.granted());
  ASSERT_TRUE(coordinator.answered(*coordinator.workers[0], [](const Dismissal&) { return Dismissed{}; }));
  coordinator.take_snapshots();
  writing = coordinator.order_to_write();
  coordinator.write(writing, full);
  EXPECT_TRUE(
      LoneCoordinator::heard(self, [](const RunEnd& reached) { EXPECT_EQ(reached.error.code, core::Errc::no_space); }));
}

/// The clock is the host's and does not begin with the run.
TEST(Checkpoints, ARunThatFailsBeforeItHasBegunTookNoTime) {
  LoneCoordinator coordinator(every_other_step());
  coordinator.pass(std::chrono::seconds(1000));
  coordinator.spawn([](CoordinatorSetup& setup) { setup.before.wall_s = 7; });
  caf::scoped_actor self(coordinator.system());
  self->send(coordinator.actor(), AwaitEnd{});
  coordinator.tell(RunError{core::Errc::io, "no shared memory", 0});
  EXPECT_TRUE(LoneCoordinator::heard(self, [](const RunEnd& reached) {
    EXPECT_EQ(reached.error.code, core::Errc::io);
    EXPECT_EQ(reached.summary.wall_s, 7);
    EXPECT_EQ(reached.summary.ledger.wall_s, 7);
  }));
}

/// A file system whose sync blocks until the test releases it.
class SlowDisk final : public nn::FileSystem {
 public:
  /// The next sync waits until release(), for a minute at most.
  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  [[nodiscard]] bool has_held() const { return has_held_; }
  /// From now on every sync fails.
  void fill() { full_ = true; }
  void await_sync() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, 60s, [&] { return has_held_; })) << "nothing is synced";
  }

  core::Result<int> create(const std::string& path) override { return disk_.create(path); }
  core::Result<void> write(int file, nn::Bytes bytes, const std::string& path) override {
    return disk_.write(file, bytes, path);
  }
  core::Result<void> sync(int file, const std::string& path) override {
    std::unique_lock lock(mutex_);
    has_held_ = has_held_ || held_;
    changed_.notify_all();
    EXPECT_TRUE(changed_.wait_for(lock, 60s, [&] { return !held_; })) << path << " holds somebody up";
    held_ = false;
    if (full_) return tl::unexpected(core::from_errno(ENOSPC, "sync", path));
    return disk_.sync(file, path);
  }
  core::Result<void> close(int file, const std::string& path) override { return disk_.close(file, path); }
  core::Result<void> copy(const std::string& from, const std::string& to, const std::function<void()>& moved) override {
    return disk_.copy(from, to, moved);
  }
  core::Result<void> rename(const std::string& from, const std::string& to) override { return disk_.rename(from, to); }
  core::Result<void> sync_directory(const std::string& path) override { return disk_.sync_directory(path); }
  core::Result<void> remove(const std::string& path) override { return disk_.remove(path); }
  core::Result<void> create_directories(const std::string& path) override { return disk_.create_directories(path); }
  core::Result<std::vector<std::string>> list(const std::string& path) override { return disk_.list(path); }
  core::Result<std::vector<std::byte>> read(const std::string& path) override { return disk_.read(path); }

 private:
  nn::FileSystem& disk_ = nn::system_files();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false, has_held_ = false, full_ = false;
};

/// A recorder on a slow disk, and a checkpoint and records to write.
class SlowRecorder : public ::testing::Test {
 protected:
  SlowRecorder() {
    checkpoint_->graph = spec_.graph;
    checkpoint_->vectors.emplace(
        "", std::make_shared<std::vector<float>>(static_cast<std::size_t>(spec_.graph->parameter_count())));
    RecorderSetup setup;
    setup.directory = directory_;
    setup.disk = metered_;
    setup.checkpoints = std::make_shared<nn::CheckpointStore>(
        nn::CheckpointStore::open(directory_->checkpoints(), 2, *metered_).value());
    setup.console.mode = report::ConsoleOptions::Mode::quiet;
    setup.tensorboard = false;
    setup.clock = &clock_;
    setup.config = run_.settings()->config;
    setup.plan = "{}";
    recorder_ = system_.spawn<caf::detached>(recorder, std::move(setup));
  }
  /// Sends a record of this kind.
  void record(std::uint16_t kind) {
    self_->send(recorder_, JournalRecords{.kinds = {kind}, .sizes = {0}, .bytes = {}});
  }
  void rotate() {
    self_->request(recorder_, 60s, RotateOrder{}, CheckpointPayload{checkpoint_})
        .receive([](const Rotated&) {}, failed);
  }
  void expect_finished() {
    self_->request(recorder_, 60s, Finish{}, RunEnd{})
        .receive([](const Finished& finished) { EXPECT_EQ(finished.error, ""); }, failed);
  }
  /// Kinds of the records of a segment.
  [[nodiscard]] std::vector<std::uint16_t> segment(std::size_t number) const {
    const auto segments = directory_->journals().value();
    if (number > segments.size()) return {};
    std::vector<std::uint16_t> kinds;
    const auto contents = core::read_journal(segments[number - 1].path).value();
    for (const auto& each : contents.records) kinds.push_back(each.kind);
    return kinds;
  }
  static void failed(const caf::error& error) { ADD_FAILURE() << caf::to_string(error); }
  static constexpr auto kEnd = static_cast<std::uint16_t>(experiment::RunRecordKind::end);

  tests::SmallRun run_;
  RunSpec spec_ = *experiment::build_run_spec(*run_.settings(), true);
  std::shared_ptr<const RunDirectory> directory_ = std::make_shared<const RunDirectory>(
      RunDirectory::create((run_.directory() / "runs").string(), "slow", 0).value());
  std::shared_ptr<Checkpoint> checkpoint_ = std::make_shared<Checkpoint>();
  SlowDisk disk_;
  std::shared_ptr<nn::MeteredFiles> metered_ = std::make_shared<nn::MeteredFiles>(disk_);
  core::SteadyClock clock_;
  SystemConfig config_;
  caf::actor_system system_{config_};
  caf::scoped_actor self_{system_};
  RecorderActor recorder_;
};

TEST_F(SlowRecorder, RecordsDuringACheckpointWriteAndEndsAfterIt) {
  disk_.hold();
  auto writing = self_->request(recorder_, 60s, CheckpointOrder{}, CheckpointPayload{checkpoint_});
  disk_.await_sync();
  rotate();  // it still processes and answers other messages
  auto finishing = self_->request(recorder_, 60s, Finish{}, RunEnd{});
  // The recorder has not ended: once it has carried out Finish it answers no further request.
  auto another = self_->request(recorder_, 60s, CheckpointOrder{}, CheckpointPayload{checkpoint_});
  disk_.release();
  const auto there = [](const CheckpointWritten& written) { EXPECT_TRUE(std::filesystem::exists(written.path)); };
  writing.receive(there, failed);
  another.receive(there, failed);
  finishing.receive([](const Finished& finished) { EXPECT_EQ(finished.error, ""); }, failed);
}

TEST_F(SlowRecorder, BeginsASegmentWhileItsStartStateIsWritten) {
  record(0x7001);
  disk_.hold();
  rotate();
  disk_.await_sync();
  record(0x7002);
  auto second = self_->request(recorder_, 60s, RotateOrder{}, CheckpointPayload{checkpoint_});
  record(0x7003);
  disk_.release();
  second.receive([](const Rotated&) {}, failed);
  record(0x7004);
  expect_finished();
  EXPECT_EQ(segment(1), (std::vector<std::uint16_t>{0x7001, kEnd}));
  EXPECT_EQ(segment(2), (std::vector<std::uint16_t>{0x7002, kEnd}));
  EXPECT_EQ(segment(3), (std::vector<std::uint16_t>{0x7003, 0x7004, kEnd}));
}

TEST_F(SlowRecorder, GoesOnWithTheOldSegmentWhenTheNewOneCannotBegin) {
  record(0x7001);
  disk_.fill();
  disk_.hold();
  rotate();
  disk_.await_sync();
  record(0x7002);
  disk_.release();
  expect_finished();
  EXPECT_EQ(segment(1), (std::vector<std::uint16_t>{0x7001, 0x7002, kEnd}));
  EXPECT_EQ(segment(2), (std::vector<std::uint16_t>{}));
}

/// Calls `printed` with each line of a run's progress.
class Progress {
 public:
  explicit Progress(std::function<void(std::string_view)> printed) : printed_(std::move(printed)) {
    stream_ = ::fopencookie(this, "w", {.read = nullptr, .write = write, .seek = nullptr, .close = nullptr});
  }
  ~Progress() { std::fclose(stream_); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  [[nodiscard]] std::FILE* stream() const { return stream_; }

 private:
  static ssize_t write(void* self, const char* text, std::size_t length) {
    static_cast<Progress*>(self)->printed_({text, length});
    return static_cast<ssize_t>(length);
  }
  std::function<void(std::string_view)> printed_;
  std::FILE* stream_;
};

// The disk takes epoch 1's checkpoint only after epoch 2 has been trained, evaluated and printed: the run must not wait for the disk.
TEST(Checkpoints, RunTrainsAndReportsAnEpochDuringAWrite) {
  for (const char* strategy : {"easgd", "bsp"}) {
    SCOPED_TRACE(strategy);
    SlowDisk disk;
    const Progress progress([&](std::string_view text) {
      if (text.find("epoch 1/3") != std::string_view::npos) disk.hold();
      if (text.find("epoch 2/3") == std::string_view::npos) return;
      disk.await_sync();
      disk.release();
    });
    tests::SmallRun run({std::string("strategy.name=") + strategy, "run.epochs=3"});
    const auto end = run.train_over(disk, progress.stream());
    EXPECT_FALSE(end.failed) << end.error.message;
    EXPECT_TRUE(disk.has_held());
    EXPECT_FALSE(run.tensors().empty());
  }
}

// A crash while a checkpoint is written leaves this: a copy of the directory, made at that moment.
TEST(Checkpoints, CrashDuringAWriteLeavesThePreviousCheckpoint) {
  namespace fs = std::filesystem;
  SlowDisk disk;
  tests::SmallRun run({"run.epochs=3"});
  const auto left = run.directory() / "left";
  const Progress progress([&](std::string_view text) {
    if (text.find("epoch 1/3") != std::string_view::npos) disk.hold();
    if (text.find("epoch 2/3") == std::string_view::npos) return;
    disk.await_sync();
    fs::copy(run.run_directory(), left, fs::copy_options::recursive);
    disk.release();
  });
  const auto whole = run.train_over(disk, progress.stream());
  ASSERT_FALSE(whole.failed) << whole.error.message;
  const auto in_time = run.run_directory();
  fs::remove_all(in_time);
  fs::rename(left, in_time);
  EXPECT_FALSE(fs::exists(in_time / "checkpoints" / "step-000000000060.safetensors"));
  const auto end = run.resume();
  EXPECT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(end.summary.center_hash, whole.summary.center_hash);
}

}  // namespace
}  // namespace troupe::actors
