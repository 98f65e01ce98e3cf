#include "nn/checkpoint/checkpoint.hpp"

#include <gtest/gtest.h>

#include "nn/checkpoint/manifest.hpp"
#include "tests/nn/checkpoint/memory_files.hpp"

namespace troupe::nn {
namespace {

constexpr const char* kDirectory = "c";

std::string path_of(std::int64_t step) { return "c/" + checkpoint_name(step); }

CheckpointStore open(MemoryFiles& files, int keep = 2) {
  auto store = CheckpointStore::open(kDirectory, keep, files);
  EXPECT_TRUE(store) << store.error().message;
  return std::move(store.value());
}

void save(CheckpointStore& store, std::int64_t step) {
  const float value = static_cast<float>(step);
  const TensorView tensor{"x", DType::f32, {}, std::as_bytes(std::span(&value, 1))};
  const auto saved = store.save(step, std::span(&tensor, 1), {{"sampler", "at " + std::to_string(step)}});
  ASSERT_TRUE(saved) << saved.error().message;
  EXPECT_EQ(*saved, path_of(step));
}

std::vector<std::string> listing(MemoryFiles& files) { return files.list(kDirectory).value(); }

TEST(CheckpointStore, LoadsWhatWasSaved) {
  MemoryFiles files;
  auto store = open(files);
  save(store, 7);
  const auto loaded = store.load_newest();
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->checkpoint.step, 7);
  EXPECT_EQ(loaded->path, "c/step-000000000007.safetensors");
  EXPECT_TRUE(loaded->refused.empty());
  EXPECT_EQ(loaded->checkpoint.file.text("sampler").value(), "at 7");
  float value = 0;
  EXPECT_TRUE(loaded->checkpoint.file.copy_floats("x", {}, std::span(&value, 1)));
  EXPECT_EQ(value, 7);
}

TEST(CheckpointStore, KeepsTheNewestGenerations) {
  MemoryFiles files;
  auto store = open(files, 3);
  for (const std::int64_t step : {10, 20, 30, 40, 50}) save(store, step);
  EXPECT_EQ(listing(files),
            (std::vector<std::string>{"manifest.json", checkpoint_name(30), checkpoint_name(40), checkpoint_name(50)}));
  const auto manifest = read_manifest(files, "c/manifest.json");
  ASSERT_TRUE(manifest);
  EXPECT_EQ(*manifest, (Manifest{{50, 40, 30}, {20}}));
}

TEST(CheckpointStore, NeverKeepsFewerThanTwo) {
  MemoryFiles files;
  auto store = open(files, 0);
  for (const std::int64_t step : {1, 2, 3}) save(store, step);
  EXPECT_EQ(listing(files), (std::vector<std::string>{"manifest.json", checkpoint_name(2), checkpoint_name(3)}));
}

TEST(CheckpointStore, SavingAStepAgainReplacesIt) {
  MemoryFiles files;
  auto store = open(files);
  save(store, 1);
  save(store, 2);
  save(store, 2);
  EXPECT_EQ(listing(files), (std::vector<std::string>{"manifest.json", checkpoint_name(1), checkpoint_name(2)}));
  EXPECT_EQ(store.load_newest()->checkpoint.step, 2);
}

TEST(CheckpointStore, WorksWithoutAManifest) {
  MemoryFiles files;
  auto store = open(files);
  save(store, 1);
  save(store, 2);
  ASSERT_TRUE(files.remove("c/manifest.json"));
  const auto loaded = store.load_newest();
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->checkpoint.step, 2);
  ASSERT_EQ(loaded->refused.size(), 1u);
  EXPECT_EQ(loaded->refused[0],
            "cannot open c/manifest.json: No such file or directory (the directory was searched instead)");
}

TEST(CheckpointStore, AnEmptyDirectoryHasNoCheckpoint) {
  MemoryFiles files;
  const auto loaded = open(files).load_newest();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, core::Errc::config);
  EXPECT_EQ(loaded.error().message, "there is no checkpoint in c");
}

TEST(CheckpointStore, ReportsWhyNothingLoads) {
  MemoryFiles files;
  auto store = open(files);
  save(store, 1);
  save(store, 2);
  files.bytes(path_of(1)).resize(3);
  files.bytes(path_of(2)).back() ^= std::byte{1};
  const auto loaded = store.load_newest();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, core::Errc::corrupt);
  EXPECT_EQ(loaded.error().message,
            "no checkpoint in c can be used: c/step-000000000002.safetensors: tensor \"x\": its checksum differs; "
            "c/step-000000000001.safetensors: 3 bytes are too few for a safetensors file: it was cut off");
}

TEST(CheckpointStore, AMissingGenerationIsReported) {
  MemoryFiles files;
  auto store = open(files);
  save(store, 1);
  save(store, 2);
  ASSERT_TRUE(files.remove(path_of(2)));
  const auto loaded = store.load_newest();
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->checkpoint.step, 1);
  EXPECT_EQ(loaded->refused,
            std::vector<std::string>{"c/step-000000000002.safetensors: it is missing, though the manifest names it"});
}

TEST(CheckpointStore, ARenamedFileIsNotTakenForAnotherStep) {
  MemoryFiles files;
  auto store = open(files);
  save(store, 1);
  ASSERT_TRUE(files.rename(path_of(1), path_of(9)));
  save(store, 2);  // below 9: generation 9 is removed
  EXPECT_FALSE(files.exists(path_of(9)));
  ASSERT_TRUE(files.rename(path_of(2), path_of(9)));
  const auto loaded = store.load_newest();
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("c/step-000000000009.safetensors: it holds step 2"), std::string::npos)
      << loaded.error().message;
}

TEST(CheckpointStore, ACorruptGenerationDoesNotCountAsKept) {
  MemoryFiles files;
  auto store = open(files);
  save(store, 1);
  save(store, 2);
  files.bytes(path_of(2)).back() ^= std::byte{1};
  ASSERT_EQ(store.load_newest()->checkpoint.step, 1);
  save(store, 3);
  EXPECT_EQ(listing(files), (std::vector<std::string>{"manifest.json", checkpoint_name(1), checkpoint_name(3)}));
}

TEST(CheckpointStore, GenerationsOfAnAbandonedCourseAreRemoved) {
  // Resumed from 10 on purpose although 20 existed: after the next save the newest is 15, not 20.
  MemoryFiles files;
  auto store = open(files);
  save(store, 10);
  save(store, 20);
  save(store, 15);
  EXPECT_EQ(listing(files), (std::vector<std::string>{"manifest.json", checkpoint_name(10), checkpoint_name(15)}));
  EXPECT_EQ(store.load_newest()->checkpoint.step, 15);
}

TEST(CheckpointStore, AGenerationDueForRemovalLoadsOnlyAsTheLast) {
  MemoryFiles files;
  auto store = open(files);
  save(store, 10);
  save(store, 20);
  const auto given_up = files.bytes(path_of(20));
  save(store, 15);
  const int file = files.create(path_of(20)).value();  // the process died before it removed 20
  ASSERT_TRUE(files.write(file, given_up, path_of(20)));
  EXPECT_EQ(store.load_newest()->checkpoint.step, 15);
  files.bytes(path_of(15)).clear();
  EXPECT_EQ(store.load_newest()->checkpoint.step, 10);
  files.bytes(path_of(10)).clear();
  EXPECT_EQ(store.load_newest()->checkpoint.step, 20);
}

TEST(CheckpointStore, OpeningRemovesTemporariesOnly) {
  MemoryFiles files;
  ASSERT_TRUE(files.create("c/step-000000000003.safetensors.tmp"));
  ASSERT_TRUE(files.create("c/notes.txt"));
  auto store = open(files);
  EXPECT_EQ(listing(files), std::vector<std::string>{"notes.txt"});
}

TEST(LoadNewest, OnlyListsAndReads) {
  MemoryFiles files;
  auto store = open(files);
  for (const std::int64_t step : {1, 2, 3}) save(store, step);
  files.bytes(path_of(3)).back() ^= std::byte{1};
  ASSERT_TRUE(files.create("c/step-000000000004.safetensors.h-1-00000000-0.tmp"));  // in use by another process
  files.clear_log();
  const auto loaded = load_newest(kDirectory, files);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->checkpoint.step, 2);
  EXPECT_EQ(loaded->refused.size(), 1u);
  EXPECT_FALSE(load_newest("nowhere", files));
  for (const auto& call : files.log()) EXPECT_TRUE(call.starts_with("list ") || call.starts_with("read ")) << call;
  EXPECT_TRUE(files.exists("c/step-000000000004.safetensors.h-1-00000000-0.tmp"));
}

TEST(LoadNewest, FindsTheNewestWhileAWriterRemovesListedFiles) {
  MemoryFiles files;
  auto store = open(files);
  save(store, 1);
  save(store, 2);
  std::int64_t next = 3;
  files.set_hook([&](const std::string& call) {
    // Between the listing and the reading two new generations appear and the listed ones are removed.
    if (!call.starts_with("read ") || next > 4) return;
    save(store, next++);
    save(store, next++);
  });
  const auto loaded = load_newest(kDirectory, files);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->checkpoint.step, 4);
  EXPECT_TRUE(loaded->refused.empty()) << loaded->refused.front();
}

TEST(CheckpointStore, FilesOfOtherProgramsAreRefused) {
  MemoryFiles files;
  const auto encoded = encode_safetensors({}, {{"format", "pt"}, {"step", "1"}});
  const int file = files.create("model.safetensors").value();
  for (const auto part : encoded->parts()) ASSERT_TRUE(files.write(file, part, ""));
  const auto loaded = load_checkpoint("model.safetensors", files);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().message,
            "model.safetensors: its format is \"pt\", this version reads \"troupe-checkpoint-1\"");
  EXPECT_EQ(load_checkpoint("nowhere", files).error().code, core::Errc::io);
}

TEST(CheckpointStore, MetadataThatIsNotTextIsAnErrorBeforeAnythingIsWritten) {
  MemoryFiles files;
  auto store = open(files);
  const auto saved = store.save(1, {}, {{"sampler", "\xff"}});
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code, core::Errc::internal);
  EXPECT_TRUE(listing(files).empty());
}

}  // namespace
}  // namespace troupe::nn
