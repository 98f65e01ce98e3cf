// Part of every test program: a test that hangs ends it, with the test's name. CTest's deadline, which is for the whole program, names no test.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace {

std::string g_hung;  // the line of the test that runs; read in the signal's handler

void end_hung_test(int) {
  static_cast<void>(!::write(STDERR_FILENO, g_hung.data(), g_hung.size()));
  std::abort();
}

/// The limit of a test is TROUPE_TEST_SECONDS, which CTest sets. Without it tests may take as long as a debugger needs.
class HangWatch final : public ::testing::EmptyTestEventListener {
 public:
  explicit HangWatch(unsigned seconds) : seconds_(seconds) { std::signal(SIGALRM, end_hung_test); }
  void OnTestStart(const ::testing::TestInfo& test) override {
    g_hung = std::string("hung: ") + test.test_suite_name() + "." + test.name() + " has not ended within " +
             std::to_string(seconds_) + " s\n";
    ::alarm(seconds_);
  }
  void OnTestEnd(const ::testing::TestInfo&) override { ::alarm(0); }

 private:
  const unsigned seconds_;
};

const bool g_watching = [] {
  const auto* const limit = std::getenv("TROUPE_TEST_SECONDS");
  const auto seconds = limit == nullptr ? 0 : static_cast<unsigned>(std::atoi(limit));
  if (seconds > 0) ::testing::UnitTest::GetInstance()->listeners().Append(new HangWatch(seconds));
  return seconds > 0;
}();

}  // namespace
