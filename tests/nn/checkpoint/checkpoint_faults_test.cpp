// Checkpoint faults on a file system in memory: after every failure, crash or damage, the old or the new generation loads.
#include <algorithm>
#include <cerrno>

#include <gtest/gtest.h>

#include "core/random.hpp"
#include "nn/checkpoint/checkpoint.hpp"
#include "nn/checkpoint/manifest.hpp"
#include "tests/nn/checkpoint/memory_files.hpp"

namespace troupe::nn {
namespace {

constexpr const char* kFaultyDirectory = "run/checkpoints";

/// The contents of generation `step`: a tensor that differs for each step.
std::vector<float> contents(std::int64_t step) { return std::vector<float>(100, static_cast<float>(step)); }

core::Result<std::string> save_with_faults(CheckpointStore& store, std::int64_t step) {
  const auto values = contents(step);
  const TensorView tensor{"fc1.weight", DType::f32, {10, 10}, std::as_bytes(std::span(values))};
  return store.save(step, std::span(&tensor, 1), {{"leases", "{}"}});
}

CheckpointStore open_faulty(MemoryFiles& files) {
  auto store = CheckpointStore::open(kFaultyDirectory, 2, files);
  EXPECT_TRUE(store) << store.error().message;
  return std::move(store.value());
}

/// Loads the newest generation and checks its contents against its step; -1 when nothing loads.
std::int64_t newest(MemoryFiles& files) {
  auto store = open_faulty(files);
  const auto loaded = store.load_newest();
  if (!loaded) return -1;
  std::vector<float> values(100);
  EXPECT_TRUE(loaded->checkpoint.file.copy_floats("fc1.weight", {10, 10}, values));
  EXPECT_EQ(values, contents(loaded->checkpoint.step));
  return loaded->checkpoint.step;
}

bool any_temporary(MemoryFiles& files) {
  const auto names = files.list(kFaultyDirectory);
  return std::ranges::any_of(names.value(), [](const std::string& name) { return name.ends_with(kTemporarySuffix); });
}

/// "…/manifest.json.host-12-0123abcd-4.tmp" → "…/manifest.json.tmp": removes the part that is unique to one process.
std::vector<std::string> without_writers(std::vector<std::string> log) {
  for (auto& call : log) {
    if (!call.ends_with(kTemporarySuffix)) continue;
    const auto whole = call.substr(0, call.size() - kTemporarySuffix.size());
    const auto name =
        whole.find(".safetensors") != std::string::npos ? whole.find(".safetensors") + 12 : whole.find(".json") + 5;
    call = whole.substr(0, name) + std::string(kTemporarySuffix);
  }
  return log;
}

/// A store with generations 1 and 2, both durable.
MemoryFiles two_generations() {
  MemoryFiles files;
  auto store = open_faulty(files);
  EXPECT_TRUE(save_with_faults(store, 1));
  EXPECT_TRUE(save_with_faults(store, 2));
  return files;
}

TEST(CheckpointFaults, SaveMakesItsCallsInTheDocumentedOrder) {
  MemoryFiles files = two_generations();
  auto store = open_faulty(files);
  files.clear_log();
  ASSERT_TRUE(save_with_faults(store, 3));
  const std::string data = std::string(kFaultyDirectory) + "/step-000000000003.safetensors";
  const std::string manifest = std::string(kFaultyDirectory) + "/manifest.json";
  EXPECT_EQ(without_writers(files.log()),
            (std::vector<std::string>{
                "list run/checkpoints", "create " + data + ".tmp", "write " + data + ".tmp", "write " + data + ".tmp",
                "sync " + data + ".tmp", "close " + data + ".tmp", "rename " + data, "sync_directory run/checkpoints",
                "create " + manifest + ".tmp", "write " + manifest + ".tmp", "sync " + manifest + ".tmp",
                "close " + manifest + ".tmp", "rename " + manifest, "sync_directory run/checkpoints",
                "remove run/checkpoints/step-000000000001.safetensors"}));
}

TEST(CheckpointFaults, AfterAnyFailedCallOldOrNewLoadsAndTheNextSaveWorks) {
  int failures = 0;
  for (int n = 1;; ++n) {
    MemoryFiles files = two_generations();
    auto store = open_faulty(files);
    files.fail_at(n, n % 2 == 0 ? ENOSPC : EIO, false);
    const auto saved = save_with_faults(store, 3);
    if (!files.failed()) break;
    ++failures;
    if (!saved) {
      EXPECT_EQ(saved.error().code, n % 2 == 0 ? core::Errc::no_space : core::Errc::io) << n;
    }
    files.heal();
    EXPECT_FALSE(any_temporary(files)) << n;
    EXPECT_EQ(files.open_files(), 0u) << n;
    const auto step = newest(files);
    EXPECT_TRUE(saved ? step == 3 : step == 2 || step == 3) << n << " loaded " << step;
    EXPECT_TRUE(save_with_faults(store, 4)) << n;
    EXPECT_EQ(newest(files), 4) << n;
    EXPECT_TRUE(files.violations().empty()) << n << ": " << files.violations().front();
  }
  EXPECT_EQ(failures, 15);  // every call of the order above failed once
}

TEST(CheckpointFaults, AFailedSyncIsNeverSuccess) {
  MemoryFiles files = two_generations();
  auto store = open_faulty(files);
  int syncs = 0;
  for (int n = 1;; ++n) {
    files.clear_log();
    files.fail_at(n, EIO, false);
    const auto saved = save_with_faults(store, 10 + n);
    if (!files.failed()) break;
    const auto& log = files.log();
    const std::string& failed_call = log[static_cast<std::size_t>(n) - 1];
    if (failed_call.starts_with("sync")) {
      EXPECT_FALSE(saved) << failed_call;
      ++syncs;
    }
  }
  EXPECT_EQ(syncs, 4);  // of the file, the manifest, and the directory after each
  EXPECT_TRUE(files.violations().empty());
}

TEST(CheckpointFaults, PowerLossAtAnyCallKeepsOldOrNew) {
  constexpr int kSeeds = 40;
  int crashes = 0;
  for (int n = 1;; ++n) {
    bool reached = false;
    for (int seed = 0; seed < kSeeds; ++seed) {
      MemoryFiles files = two_generations();
      auto store = open_faulty(files);
      files.fail_at(n, EIO, true);
      const auto saved = save_with_faults(store, 3);
      reached = files.failed();
      if (!reached) break;
      ++crashes;
      core::Random random(static_cast<std::uint64_t>(seed), core::Purpose::test, static_cast<std::uint64_t>(n));
      files.heal();
      files.crash(random);
      const auto step = newest(files);
      EXPECT_TRUE(saved ? step == 3 : step == 2 || step == 3) << "call " << n << " seed " << seed << " loaded " << step;
      EXPECT_FALSE(any_temporary(files));  // opening removes the files of the dead process
      auto resumed = open_faulty(files);
      EXPECT_TRUE(save_with_faults(resumed, 4));
      files.crash(random);
      EXPECT_EQ(newest(files), 4);
    }
    if (!reached) break;
  }
  EXPECT_EQ(crashes, 15 * kSeeds);
}

TEST(CheckpointFaults, AFullDiskIsNamedAndLeavesNothingBehind) {
  // Every capacity from "nothing more fits" to "all fits".
  MemoryFiles sized = two_generations();
  auto reference = open_faulty(sized);
  ASSERT_TRUE(save_with_faults(reference, 3));
  const std::size_t file = sized.bytes(std::string(kFaultyDirectory) + "/step-000000000003.safetensors").size();
  int refused = 0;
  for (std::size_t room = 0; room < file + 400; room += 16) {
    MemoryFiles files = two_generations();
    auto store = open_faulty(files);
    const std::string base = std::string(kFaultyDirectory) + "/";
    const std::size_t before = files.bytes(base + "step-000000000001.safetensors").size() +
                               files.bytes(base + "step-000000000002.safetensors").size() +
                               files.bytes(base + "manifest.json").size();
    files.set_capacity(before + room);
    const auto saved = save_with_faults(store, 3);
    EXPECT_FALSE(any_temporary(files)) << room;
    if (saved) {
      EXPECT_EQ(newest(files), 3);
      continue;
    }
    ++refused;
    EXPECT_EQ(saved.error().code, core::Errc::no_space);
    EXPECT_NE(saved.error().message.find(kFaultyDirectory), std::string::npos) << saved.error().message;
    EXPECT_GE(newest(files), 2);
    files.set_capacity(before + 10 * file);  // room again
    EXPECT_TRUE(save_with_faults(store, 4)) << room;
    EXPECT_EQ(newest(files), 4);
  }
  EXPECT_GT(refused, static_cast<int>(file / 16));
  EXPECT_LT(refused, static_cast<int>((file + 400) / 16));
}

TEST(CheckpointFaults, DamageToTheNewestIsDetectedAndTheOneBeforeLoads) {
  const MemoryFiles intact = two_generations();
  const std::string newest_path = std::string(kFaultyDirectory) + "/step-000000000002.safetensors";
  const auto expect_fallback = [&](auto damage) {
    MemoryFiles files = two_generations();
    damage(files.bytes(newest_path));
    auto store = open_faulty(files);
    const auto loaded = store.load_newest();
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(loaded->checkpoint.step, 1);
    ASSERT_EQ(loaded->refused.size(), 1u);
    EXPECT_EQ(loaded->refused[0].rfind(newest_path + ": ", 0), 0u) << loaded->refused[0];
  };
  MemoryFiles copy = two_generations();
  const std::size_t size = copy.bytes(newest_path).size();
  for (std::size_t length = 0; length < size; length += 8) expect_fallback([&](auto& bytes) { bytes.resize(length); });
  for (std::size_t byte = 0; byte < size; ++byte)
    expect_fallback([&](auto& bytes) { bytes[byte] ^= std::byte{1} << (byte % 8); });
  core::Random random(1, core::Purpose::test, 22);
  for (int i = 0; i < 1000; ++i) {
    const auto bit = random.below(size * 8);
    expect_fallback([&](auto& bytes) { bytes[bit / 8] ^= std::byte{1} << (bit % 8); });
  }
  expect_fallback([](auto& bytes) { bytes.push_back(std::byte{0}); });
}

TEST(CheckpointFaults, AnyDamageToTheManifestIsNoticedAndHarmless) {
  const std::string manifest = std::string(kFaultyDirectory) + "/manifest.json";
  MemoryFiles copy = two_generations();
  const std::size_t size = copy.bytes(manifest).size();
  for (std::size_t bit = 0; bit < size * 8; ++bit) {
    MemoryFiles files = two_generations();
    files.bytes(manifest)[bit / 8] ^= std::byte{1} << (bit % 8);
    auto store = open_faulty(files);
    const auto loaded = store.load_newest();
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(loaded->checkpoint.step, 2);
    ASSERT_EQ(loaded->refused.size(), 1u);
    EXPECT_EQ(loaded->refused[0],
              manifest + ": it was changed or cut off after it was written (the directory was searched instead)");
  }
}

}  // namespace
}  // namespace troupe::nn
