// Whole runs over real processes with events in random order. Each ends with the documented exit code, trains every sample of every epoch
// once or reports which it did not, learns about as much as an undisturbed run, and can be replayed.
//
//   TROUPE_HISTORIES=N        number of histories, instead of the 12 of every test run
//   TROUPE_HISTORIES_SEED=S   seed of the first of them
//   TROUPE_HISTORY="…"        one history: the line that a failure prints, perhaps shortened
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/histories/generator.hpp"
#include "tests/histories/oracle.hpp"
#include "tests/histories/player.hpp"

namespace troupe::histories {
namespace {

std::uint64_t number(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Copies a failed history's directory to a place where it is kept; returns that path.
std::string keep(const tests::Folder& folder, const std::string& name) {
  namespace fs = std::filesystem;
  const auto kept = fs::temp_directory_path() / ("troupe-history-" + name);
  std::error_code failed;
  fs::remove_all(kept, failed);
  fs::copy(folder.path(), kept, fs::copy_options::recursive, failed);
  return kept;
}

void expect_good(const History& history, const std::string& name) {
  const tests::Folder folder;
  std::cout << "[ history  ] " << name << ": " << to_text(history) << std::endl;
  Player player(history, folder);
  const auto outcome = player.play();
  const auto wrong = judge(history, outcome, folder);
  if (wrong.empty()) return;
  std::string text = "history " + name + "\n  TROUPE_HISTORY=\"" + to_text(history) + "\"\n";
  for (const auto& line : wrong) text += "  wrong: " + line + "\n";
  for (const auto& line : outcome.log) text += "  " + line + "\n";
  text += "  kept in " + keep(folder, name) + "\n";
  ADD_FAILURE() << text << player.everything_said();
}

const char* given() {
  const char* line = std::getenv("TROUPE_HISTORY");
  return line && *line ? line : nullptr;
}

std::vector<std::uint64_t> seeds() {
  if (given()) return {0};
  const auto count = number("TROUPE_HISTORIES", 0);
  if (count == 0) return telling_seeds(12);
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), number("TROUPE_HISTORIES_SEED", 1));
  return all;
}

class Histories : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Histories, EndsAsDocumented) {
  const auto history = given() ? parse(given()) : generate(GetParam());
  ASSERT_TRUE(history) << history.error().message;
  expect_good(*history, given() ? "given" : std::to_string(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Seed, Histories, testing::ValuesIn(seeds()),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
}  // namespace troupe::histories
