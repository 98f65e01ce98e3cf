#include "gpu/plans/engine_cache.hpp"

#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/folder.hpp"

namespace troupe::gpu {
namespace {

DeviceInfo some_device(const std::string& libraries = "CUDA 13.0, cuDNN 9.19.0, cuBLAS 13.1.0") {
  DeviceInfo info;
  info.name = "NVIDIA H200";
  info.libraries = libraries;
  return info;
}

TEST(EngineCache, ChoicesAreThereAgainAfterSave) {
  const tests::Folder folder;
  {
    EngineCache cache(folder.file("troupe"), some_device());
    EXPECT_FALSE(cache.find("a"));
    cache.put("a", {"cudnn 41 2=7", 0.25});
    EXPECT_EQ(cache.find("a"), (EngineCache::Choice{"cudnn 41 2=7", 0.25}));
    ASSERT_TRUE(cache.save());
    EXPECT_EQ(cache.file(), folder.file("troupe/engines-NVIDIA-H200-CUDA-13.0-cuDNN-9.19.0-cuBLAS-13.1.0.json"));
  }
  EngineCache again(folder.file("troupe"), some_device());
  EXPECT_EQ(again.find("a"), (EngineCache::Choice{"cudnn 41 2=7", 0.25}));
  EXPECT_TRUE(again.notes().empty());
  EXPECT_EQ(tests::Folder().entries(), 0U);
}

TEST(EngineCache, NothingOfTheWritingStaysBeside) {
  const tests::Folder folder;
  EngineCache cache(folder.path(), some_device());
  cache.put("a", {"x", 1});
  ASSERT_TRUE(cache.save());
  EXPECT_EQ(folder.entries(), 1U);
}

TEST(EngineCache, TwoProcessesKeepTheChoicesOfBoth) {
  const tests::Folder folder;
  EngineCache first(folder.path(), some_device()), second(folder.path(), some_device());
  first.put("a", {"x", 1});
  second.put("b", {"y", 2});
  ASSERT_TRUE(first.save());
  ASSERT_TRUE(second.save());
  EXPECT_TRUE(second.find("a"));  // learnt while it saved
  const EngineCache third(folder.path(), some_device());
  EXPECT_EQ(third.find("a"), (EngineCache::Choice{"x", 1}));
  EXPECT_EQ(third.find("b"), (EngineCache::Choice{"y", 2}));
}

TEST(EngineCache, OtherDevicesAndVersionsHaveTheirOwnFile) {
  const tests::Folder folder;
  EngineCache cache(folder.path(), some_device());
  cache.put("a", {"x", 1});
  ASSERT_TRUE(cache.save());
  EXPECT_FALSE(EngineCache(folder.path(), some_device("CUDA 13.1")).find("a"));
}

/// A file that is not what save() writes for this device is ignored with one note, and replaced by the next save.
class DamagedEngineCache : public ::testing::TestWithParam<const char*> {};

TEST_P(DamagedEngineCache, IsIgnoredWithANoteAndReplaced) {
  const tests::Folder folder;
  const std::string name = EngineCache(folder.path(), some_device()).file().filename().string();
  (void)folder.write(name, GetParam());
  EngineCache cache(folder.path(), some_device());
  EXPECT_FALSE(cache.find("a"));
  ASSERT_EQ(cache.notes().size(), 1U);
  EXPECT_NE(cache.notes().front().find(name), std::string::npos);
  cache.put("a", {"z", 3});
  ASSERT_TRUE(cache.save());
  const EngineCache again(folder.path(), some_device());
  EXPECT_EQ(again.find("a"), (EngineCache::Choice{"z", 3}));
  EXPECT_TRUE(again.notes().empty());
}

constexpr const char* kHead =
    R"({"version":2,"device":"NVIDIA H200","libraries":"CUDA 13.0, cuDNN 9.19.0, cuBLAS 13.1.0")";
const std::string kNoEngines = std::string(kHead) + "}";
const std::string kEngineOfNumbers = std::string(kHead) + R"(,"engines":{"a":{"engine":1,"seconds":1}}})";
const std::string kEnginesInAList = std::string(kHead) + R"(,"engines":[]})";

INSTANTIATE_TEST_SUITE_P(
    Texts, DamagedEngineCache,
    ::testing::Values(
        "", "{", "[]", "\xff\xfe", R"({"version":1})",
        R"({"version":1,"device":"NVIDIA H200","libraries":"CUDA 13.0, cuDNN 9.19.0, cuBLAS 13.1.0","engines":{}})",
        R"({"version":2,"device":"NVIDIA A100","libraries":"CUDA 13.0, cuDNN 9.19.0, cuBLAS 13.1.0","engines":{}})",
        kNoEngines.c_str(), kEngineOfNumbers.c_str(), kEnginesInAList.c_str()));

TEST(EngineCache, WithoutAFolderItKeepsChoicesForTheProcess) {
  EngineCache cache({}, some_device());
  cache.put("a", {"x", 1});
  EXPECT_TRUE(cache.save());
  EXPECT_TRUE(cache.find("a"));
  EXPECT_TRUE(cache.file().empty());
}

TEST(EngineCache, AFolderThatCannotBeMadeIsAnErrorAndLosesNothing) {
  const tests::Folder folder;
  const std::string file = folder.write("file", "");
  EngineCache cache(file + "/below", some_device());
  cache.put("a", {"x", 1});
  const auto saved = cache.save();
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code, core::Errc::io);
  EXPECT_TRUE(cache.find("a"));
}

TEST(EngineCache, UserFolderFollowsTheDesktopStandard) {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string old_xdg = xdg ? xdg : "", old_home = home ? home : "";
  ::setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(EngineCache::user_folder(), "/x/troupe");
  ::setenv("XDG_CACHE_HOME", "relative", 1);  // the standard: ignore it
  ::setenv("HOME", "/h", 1);
  EXPECT_EQ(EngineCache::user_folder(), "/h/.cache/troupe");
  ::unsetenv("HOME");
  EXPECT_TRUE(EngineCache::user_folder().empty());
  xdg ? ::setenv("XDG_CACHE_HOME", old_xdg.c_str(), 1) : ::unsetenv("XDG_CACHE_HOME");
  if (home) ::setenv("HOME", old_home.c_str(), 1);
}

}  // namespace
}  // namespace troupe::gpu
