#include "experiment/report/tensorboard.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "experiment/report/crc32c.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::report {
namespace {

using experiment::RunStarted;
using experiment::WorkerProgress;

// An independent reader: framing and protobuf's wire format by hand, the checksum bit by bit.

struct Event {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string file_version;
  std::map<std::string, float> scalars;
  std::map<std::string, std::string> hparams;  // of the HParams plugin: tag → its message
};

std::uint32_t slow_masked_crc(std::string_view bytes) {
  std::uint64_t rest = 0xFFFFFFFF;
  for (const unsigned char byte : bytes)
    for (int bit = 0; bit < 8; ++bit) {
      const bool odd = ((rest ^ (byte >> bit)) & 1) != 0;
      rest = (rest >> 1) ^ (odd ? 0x82F63B78 : 0);
    }
  const auto crc = static_cast<std::uint32_t>(rest ^ 0xFFFFFFFF);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

class Wire {
 public:
  explicit Wire(std::string_view bytes) : bytes_(bytes) {}
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
  }
  std::string_view take(std::size_t count) {
    if (count > bytes_.size()) throw std::runtime_error("the message ends too early");
    const auto taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  template <class T>
  T fixed() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

 private:
  std::string_view bytes_;
};

/// The message of the plugin "hparams" in a value's metadata.
std::string read_metadata(std::string_view bytes) {
  Wire metadata(bytes);
  if (metadata.varint() != (1 << 3 | 2)) throw std::runtime_error("no plugin data");
  std::string name, content;
  for (Wire plugin(metadata.take(metadata.varint())); !plugin.empty();) {
    const auto key = plugin.varint();
    (key == (1 << 3 | 2) ? name : content) = plugin.take(plugin.varint());
  }
  if (name != "hparams") throw std::runtime_error("the plugin " + name);
  return content;
}

void read_value(std::string_view bytes, Event& event) {
  std::string tag;
  std::optional<float> value;
  std::optional<std::string> plugin;
  for (Wire wire(bytes); !wire.empty();) {
    const auto key = wire.varint();
    if (key == (1 << 3 | 2))
      tag = wire.take(wire.varint());
    else if (key == (2 << 3 | 5))
      value = wire.fixed<float>();
    else if (key == (9 << 3 | 2))
      plugin = read_metadata(wire.take(wire.varint()));
    else
      throw std::runtime_error(fmt::format("key {} in a value", key));
  }
  // TensorBoard too passes over a value with neither.
  if (value) event.scalars[tag] = *value;
  if (plugin) event.hparams[tag] = *plugin;
}

/// The options of a session's beginning, as text.
std::map<std::string, std::string> read_options(const std::string& message) {
  std::map<std::string, std::string> options;
  Wire data(message);
  if (data.varint() != (3 << 3 | 2)) throw std::runtime_error("not the beginning of a session");
  for (Wire start(data.take(data.varint())); !start.empty();) {
    const auto key = start.varint();
    if (key == (5 << 3 | 1)) {
      start.fixed<double>();  // when it began
      continue;
    }
    if (key != (1 << 3 | 2)) throw std::runtime_error(fmt::format("key {} in a session", key));
    std::string name, text;
    for (Wire entry(start.take(start.varint())); !entry.empty();) {
      if (entry.varint() == (1 << 3 | 2)) {
        name = entry.take(entry.varint());
        continue;
      }
      Wire option(entry.take(entry.varint()));
      switch (option.varint()) {
        case 2 << 3 | 1: text = fmt::format("{}", option.fixed<double>()); break;
        case 3 << 3 | 2: text = option.take(option.varint()); break;
        case 4 << 3 | 0: text = option.varint() != 0 ? "true" : "false"; break;
        default: throw std::runtime_error("the kind of an option");
      }
    }
    options[name] = text;
  }
  return options;
}

/// The status of a session's end: 1 success, 2 failure.
int read_status(const std::string& message) {
  Wire data(message);
  if (data.varint() != (4 << 3 | 2)) throw std::runtime_error("not the end of a session");
  Wire end(data.take(data.varint()));
  if (end.varint() != (1 << 3 | 0)) throw std::runtime_error("no status");
  return static_cast<int>(end.varint());
}

Event read_event(std::string_view bytes) {
  Event event;
  for (Wire wire(bytes); !wire.empty();) {
    const auto key = wire.varint();
    if (key == (1 << 3 | 1))
      event.wall_time = wire.fixed<double>();
    else if (key == (2 << 3 | 0))
      event.step = static_cast<std::int64_t>(wire.varint());
    else if (key == (3 << 3 | 2))
      event.file_version = wire.take(wire.varint());
    else if (key == (5 << 3 | 2)) {
      for (Wire summary(wire.take(wire.varint())); !summary.empty();) {
        if (summary.varint() != (1 << 3 | 2)) throw std::runtime_error("not a value in a summary");
        read_value(summary.take(summary.varint()), event);
      }
    } else {
      throw std::runtime_error(fmt::format("key {} in an event", key));
    }
  }
  return event;
}

std::vector<Event> read_events(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  const auto bytes = text.str();
  std::vector<Event> events;
  for (Wire wire(bytes); !wire.empty();) {
    const auto length = wire.take(8);
    EXPECT_EQ(wire.fixed<std::uint32_t>(), slow_masked_crc(length));
    const auto data = wire.take(Wire(length).fixed<std::uint64_t>());
    EXPECT_EQ(wire.fixed<std::uint32_t>(), slow_masked_crc(data));
    events.push_back(read_event(data));
  }
  return events;
}

std::vector<std::filesystem::path> event_files(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

TEST(Crc32cTest, MatchesCastagnolisPolynomial) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);  // the check value of the CRC catalogues
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);  // RFC 3720, B.4
  EXPECT_EQ(masked_crc32c("123456789"), slow_masked_crc("123456789"));
}

class TensorBoardTest : public ::testing::Test {
 protected:
  std::vector<Event> events() const {
    const auto files = event_files(folder_.directory());
    return files.size() == 1 ? read_events(files[0]) : std::vector<Event>{};
  }
  TensorBoard create() const { return TensorBoard::create(folder_.directory().string(), 1'700'000'000).value(); }
  static RunStarted shape(std::uint32_t workers, std::uint64_t samples = 0) {
    RunStarted run;
    run.workers = workers;
    run.samples = samples;
    return run;
  }
  tests::SmallRun folder_;
};

TEST_F(TensorBoardTest, AnEpochsScalarsCanBeReadBack) {
  auto board = create();
  board.started(shape(1));
  ASSERT_TRUE(board
                  .epoch({.epoch = 2,
                          .train_loss = 0.5,
                          .train_accuracy = 0.75,
                          .test_loss = 0.25,
                          .test_accuracy = 0.875,
                          .images_per_s = 9000,
                          .lr = 0.125,
                          .train_s = 3,
                          .samples = 2432},
                         10.5)
                  .has_value());
  const auto all = events();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].file_version, "brain.Event:2");
  EXPECT_EQ(all[0].wall_time, 1'700'000'000.0);
  EXPECT_EQ(all[1].wall_time, 1'700'000'010.5);
  EXPECT_EQ(all[1].step, 2432) << "as the report says: batches may wrap around";
  EXPECT_EQ(all[1].scalars, (std::map<std::string, float>{{"loss/train", 0.5f},
                                                          {"loss/test", 0.25f},
                                                          {"accuracy/train", 0.75f},
                                                          {"accuracy/test", 0.875f},
                                                          {"epoch/images_per_s", 9000.0f},
                                                          {"epoch/learning_rate", 0.125f},
                                                          {"epoch/train_s", 3.0f}}));
}

TEST_F(TensorBoardTest, ProgressIsThrottledAndTakesWorkersTogether) {
  auto board = create();
  board.started(shape(2, 1500));  // a resume
  WorkerProgress one{.worker = 0,
                     .samples = 100,
                     .loss_sum = 50,
                     .top1 = 40,
                     .recent_samples = 100,
                     .compute_s = 3,
                     .wait_s = 1,
                     .staleness_sum = 30,
                     .staleness_count = 10};
  ASSERT_TRUE(board.progress(one, 1).has_value());  // too early: the next event includes it
  EXPECT_EQ(events().size(), 1u);
  WorkerProgress two{
      .worker = 1, .samples = 300, .loss_sum = 30, .top1 = 120, .recent_samples = 300, .compute_s = 4, .wait_s = 0};
  ASSERT_TRUE(board.progress(two, 4).has_value());
  ASSERT_EQ(events().size(), 2u);
  const auto event = events()[1];
  EXPECT_EQ(event.step, 1900);
  // Together: (50 + 30) / 400, (40 + 120) / 400, 100 and 300 samples in 4 s each, 1 s of 2 · 4 s waited, 30 / 10.
  EXPECT_EQ(event.scalars, (std::map<std::string, float>{{"progress/loss", 0.2f},
                                                         {"progress/accuracy", 0.4f},
                                                         {"progress/images_per_s", 100.0f},
                                                         {"progress/wait_share", 0.125f},
                                                         {"progress/staleness", 3.0f}}));
  // The next event has what came since.
  two.samples = 320;
  two.loss_sum = 40;
  two.top1 = 5;
  two.recent_samples = 20;
  two.compute_s = 8;
  ASSERT_TRUE(board.progress(two, 8).has_value());
  const auto later = events()[2];
  EXPECT_EQ(later.scalars.at("progress/loss"), 2.0f);
  EXPECT_EQ(later.scalars.at("progress/images_per_s"), 5.0f);
  EXPECT_FALSE(later.scalars.contains("progress/staleness"));
}

TEST_F(TensorBoardTest, ValuesOfZeroAreThere) {
  auto board = create();
  board.started(shape(1));
  ASSERT_TRUE(board.epoch({.epoch = 1, .train_loss = 0.5, .test_accuracy = 0, .lr = 0}, 3).has_value());
  ASSERT_TRUE(
      board.progress({.worker = 0, .samples = 10, .top1 = 0, .recent_samples = 10, .compute_s = 1}, 4).has_value());
  const auto all = events();
  ASSERT_EQ(all.size(), 3u);
  for (const char* tag : {"accuracy/test", "epoch/learning_rate", "loss/test"}) {
    ASSERT_TRUE(all[1].scalars.contains(tag)) << tag;
    EXPECT_EQ(all[1].scalars.at(tag), 0) << tag;
  }
  for (const char* tag : {"progress/accuracy", "progress/loss", "progress/wait_share"})
    EXPECT_TRUE(all[2].scalars.contains(tag)) << tag;
}

TEST_F(TensorBoardTest, SpeedLeavesOutEvaluations) {
  auto board = create();
  board.started(shape(1));
  WorkerProgress worker{.worker = 0, .samples = 1000, .recent_samples = 1000, .compute_s = 2};
  ASSERT_TRUE(board.progress(worker, 2).has_value());
  ASSERT_TRUE(board.epoch({.epoch = 1}, 60).has_value());  // evaluated for 58 s
  worker.samples = 1500;
  worker.compute_s = 3;
  ASSERT_TRUE(board.progress(worker, 61).has_value());
  EXPECT_EQ(events().back().scalars.at("progress/images_per_s"), 500.0f);
}

TEST_F(TensorBoardTest, OptionsAndResultsAreThoseOfTheHParamsTab) {
  auto board = create();
  board.started(shape(1));
  const tests::SmallRun small({"train.lr=0.25", "cluster.slowdown=[1, 4]", "cluster.workers=2"});
  ASSERT_TRUE(board.options(small.settings()->config).has_value());
  experiment::RunEnd end;
  end.summary.test_accuracy = 0.875;
  end.summary.test_loss = std::nan("");
  ASSERT_TRUE(board.ended(end, 9).has_value());
  const auto all = events();
  ASSERT_EQ(all.size(), 4u);
  const auto options = read_options(all[1].hparams.at("_hparams_/session_start_info"));
  EXPECT_EQ(options.at("train.lr"), "0.25");
  EXPECT_EQ(options.at("cluster.workers"), "2");
  EXPECT_EQ(options.at("cluster.slowdown"), "[1.0, 4.0]");
  EXPECT_EQ(options.at("strategy.name"), small.settings()->strategy);
  EXPECT_FALSE(options.contains("run.dir"));
  EXPECT_EQ(all[2].scalars.at("final/test_accuracy"), 0.875f);
  EXPECT_FALSE(all[2].scalars.contains("final/test_loss")) << "not evaluated";
  EXPECT_EQ(read_status(all[3].hparams.at("_hparams_/session_end_info")), 1);
}

TEST_F(TensorBoardTest, OnlyARunThatCannotGoOnHasAnEnd) {
  auto board = create();
  board.started(shape(1));
  const auto ended = [&](core::Errc code) {
    experiment::RunEnd end{.summary = {}, .failed = true, .error = {code, "why"}};
    EXPECT_TRUE(board.ended(end, 9).has_value());
    return events().back();
  };
  EXPECT_TRUE(ended(core::Errc::interrupted).hparams.empty());
  EXPECT_TRUE(ended(core::Errc::peer_lost).hparams.empty());
  EXPECT_EQ(read_status(ended(core::Errc::diverged).hparams.at("_hparams_/session_end_info")), 2);
}

TEST_F(TensorBoardTest, MissingDirectoryIsAnError) {
  const auto board = TensorBoard::create("/nowhere/at/all", 0);
  ASSERT_FALSE(board.has_value());
  EXPECT_EQ(board.error().code, core::Errc::io);
}

TEST(TensorBoardRunTest, ARunAndItsResumeWriteTheirEvents) {
  tests::SmallRun run({"run.epochs=2"});
  ASSERT_FALSE(run.train().failed);
  ASSERT_FALSE(run.resume({"run.epochs=3"}).failed);
  const auto files = event_files(run.run_directory());
  ASSERT_EQ(files.size(), 2u);
  const auto evaluated_at = [](const std::filesystem::path& file) {
    std::vector<std::int64_t> steps;
    for (const auto& event : read_events(file))
      if (event.scalars.contains("accuracy/test")) steps.push_back(event.step);
    return steps;
  };
  const auto first = read_events(files[0]);
  EXPECT_TRUE(std::ranges::any_of(first, [](const Event& event) { return event.hparams.size() == 1; }));
  EXPECT_TRUE(first.back().hparams.contains("_hparams_/session_end_info"));
  EXPECT_EQ(evaluated_at(files[0]), (std::vector<std::int64_t>{1200, 2400}));
  EXPECT_EQ(evaluated_at(files[1]).back(),
            3600);  // the checkpoint's epoch may stand before it, if it is reported again
}

// Each of two epochs of 1,200 has 13 rounds of 3 · 32 samples, of which some are passed over with a backup worker.
TEST(TensorBoardRunTest, StepsOfAResumedRunAreItsSamples) {
  for (const char* backup : {"strategy.backup=0", "strategy.backup=1"}) {
    tests::SmallRun run({"run.max_epochs=1", "run.epochs=2", "strategy.name=bsp", "cluster.workers=3",
                         "data.batch=[32]", "cluster.slowdown=[1, 1, 4]", backup});
    ASSERT_FALSE(run.train().failed);
    const auto end = run.resume({"run.max_epochs=2"});
    ASSERT_FALSE(end.failed) << end.error.message;
    const auto files = event_files(run.run_directory());
    std::vector<std::int64_t> steps;
    for (const auto& file : files)
      for (const auto& event : read_events(file))
        if (!event.scalars.empty()) steps.push_back(event.step);
    EXPECT_TRUE(std::ranges::is_sorted(steps)) << backup;
    EXPECT_EQ(steps.back(), static_cast<std::int64_t>(end.summary.samples)) << backup;
  }
}

TEST(TensorBoardRunTest, CanBeSwitchedOff) {
  tests::SmallRun run({"run.tensorboard=false"});
  ASSERT_FALSE(run.train().failed);
  EXPECT_TRUE(event_files(run.run_directory()).empty());
}

}  // namespace
}  // namespace troupe::report
