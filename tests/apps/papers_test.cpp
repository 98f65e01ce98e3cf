// The papers' tables that the simulator forecasts: at least 80 % of the predicted cells within 10 %, all within 20 %.
#include <array>
#include <cstdio>
#include <regex>

#include <gtest/gtest.h>

#include "tests/apps/program.hpp"

namespace troupe::apps {
namespace {

std::string output_of(const std::string& command) {
  std::string text;
  std::array<char, 4096> part{};
  auto* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return text;
  while (const auto count = std::fread(part.data(), 1, part.size(), pipe)) text.append(part.data(), count);
  ::pclose(pipe);
  return text;
}

TEST(Papers, ForecastsAgreeWithPublishedTimes) {
  if (output_of("python3 -c 'print(1)' 2>/dev/null") != "1\n") GTEST_SKIP() << "there is no python3";
  const auto text = output_of("TROUPE='" TROUPE_BINARY "' '" TROUPE_SOURCE_DIR "/bench/papers/run.sh' 2>&1");
  std::smatch shares;
  ASSERT_TRUE(std::regex_search(text, shares, std::regex("within 10 %: ([0-9.]+) %\nwithin 20 %: ([0-9.]+) %\n$")))
      << text;
  EXPECT_GE(std::stod(shares[1]), 80) << text;
  EXPECT_EQ(std::stod(shares[2]), 100) << text;
}

}  // namespace
}  // namespace troupe::apps
