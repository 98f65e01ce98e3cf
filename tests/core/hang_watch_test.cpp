// The watch of tests/hang_watch.cpp, which every test program has.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

/// For the other process that the next test starts.
TEST(HangWatch, DISABLED_Hangs) {
  for (;;) ::pause();
}

TEST(HangWatch, EndsTheProgramOfATestThatHangsAndNamesIt) {
  const auto command = "env -u GTEST_OUTPUT -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX TROUPE_TEST_SECONDS=1 '" +
                       std::filesystem::read_symlink("/proc/self/exe").string() +
                       "' --gtest_also_run_disabled_tests --gtest_filter=HangWatch.DISABLED_Hangs 2>&1";
  auto* const child = ::popen(command.c_str(), "r");
  ASSERT_NE(child, nullptr);
  std::string said;
  for (int c = std::fgetc(child); c != EOF; c = std::fgetc(child)) said += static_cast<char>(c);
  const auto status = ::pclose(child);
  EXPECT_NE(status, 0);
  EXPECT_THAT(said, testing::HasSubstr("hung: HangWatch.DISABLED_Hangs has not ended within 1 s"));
}

}  // namespace
