// `troupe runs` on runs of the real program, and on directories written by hand.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/apps/program.hpp"
#include "tests/store/run_folders.hpp"

namespace troupe::apps {
namespace {

using testing::HasSubstr;
using testing::Not;
using RunsJson = nlohmann::json;

Outcome troupe_runs(const tests::Folder& runs, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "runs");
  arguments.insert(arguments.end(), {"--dir", runs.path()});
  return troupe(std::move(arguments));
}

TEST(RunsCommandTest, FindsARunOfTheProgram) {
  const tests::Folder runs;
  const auto config =
      runs.write(".config.toml",
                 "[run]\nname = \"grün\"\nepochs = 1\n[model]\nname = \"mlp\"\nwidths = [16]\n[data]\nname = "
                 "\"glyphs\"\nbatch = 20\ntrain_samples = 400\ntest_samples = 100\n[strategy]\nname = "
                 "\"easgd\"\ntau = 4\n");
  const auto trained = troupe({"train", config, "--quiet", "--json", "--set", "run.dir=" + runs.path()});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto summary = RunsJson::parse(trained.out);
  const auto listed = troupe_runs(runs, {"list", "strategy=easgd tau=4 status=done", "--json", "--columns",
                                         "name,accuracy,test.loss,steps,status,time.compute_s"});
  ASSERT_EQ(listed.code, 0) << listed.err;
  EXPECT_EQ(listed.err, "");
  const auto run = RunsJson::parse(listed.out);
  EXPECT_EQ(run["name"], "grün");
  EXPECT_EQ(run["accuracy"], summary["test"]["accuracy"]);
  EXPECT_EQ(run["loss"], summary["test"]["loss"]);
  EXPECT_EQ(run["steps"], summary["steps"]);
  EXPECT_EQ(run["time.compute_s"], summary["time"]["compute_s"]);
  const auto shown = troupe_runs(runs, {"show", "grün", "--json"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_EQ(RunsJson::parse(shown.out)["summary"], summary);
  EXPECT_EQ(RunsJson::parse(shown.out)["curves"]["test.accuracy"][0][2], summary["test"]["accuracy"]);
}

TEST(RunsCommandTest, TagsNotesAndRemoval) {
  const tests::Folder runs;
  store::write_done(runs, "20260102-030405-a", 0.75);
  store::write_done(runs, "20260102-030406-b", 0.5, 2);
  EXPECT_EQ(troupe_runs(runs, {"tag", "a", "paper", "best"}).out, "best paper\n");
  EXPECT_EQ(troupe_runs(runs, {"tag", runs.file("20260102-030405-a"), "--remove", "best"}).out, "paper\n");
  EXPECT_EQ(troupe_runs(runs, {"note", "20260102-030405-a/", "figure 4"}).code, 0);
  EXPECT_EQ(runs.read("20260102-030405-a/notes.json"), "{\"tags\":[\"paper\"],\"note\":\"figure 4\"}\n");
  EXPECT_EQ(troupe_runs(runs, {"tag", "a", "two words"}).code, 2);
  EXPECT_THAT(troupe_runs(runs, {"compare", "a", "b"}).out, HasSubstr("run.seed"));
  EXPECT_EQ(troupe_runs(runs, {"compare", "a"}).code, 2);
  EXPECT_EQ(troupe_runs(runs, {"rm", "c", "--yes"}).code, 78);
  const auto unsure =
      run_program({"sh", "-c", fmt::format("exec '{}' runs rm b --dir '{}' </dev/null", TROUPE_BINARY, runs.path())});
  EXPECT_EQ(unsure.code, 2);
  EXPECT_THAT(unsure.err, HasSubstr("--yes"));
  EXPECT_TRUE(std::filesystem::exists(runs.file("20260102-030406-b/summary.json")));
  EXPECT_EQ(troupe_runs(runs, {"rm", "b", "--yes"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(runs.file("20260102-030406-b")));
  const auto csv = troupe_runs(runs, {"export", "tag=paper", "--format", "csv"});
  EXPECT_EQ(std::ranges::count(csv.out, '\n'), 2) << csv.out;
}

TEST(RunsCommandTest, NamesThatAreNoUnicodeArePrintedWithReplacements) {
  const tests::Folder runs;
  store::write_done(runs, "20260102-030405-\xff", 0.75);
  runs.write("20260102-030405-\xff/config.toml", store::config_text("a"));
  runs.write("photos-\xff/cat.jpg", "");
  store::write_done(runs, "20260102-030406-b", 0.5, 2);
  for (const auto& arguments : std::vector<std::vector<std::string>>{{"list", "--json"},
                                                                     {"compare", "--filter", "seed>0", "--json"},
                                                                     {"export", "--format", "json"},
                                                                     {"rebuild", "--json"}}) {
    const auto printed = troupe_runs(runs, arguments);
    EXPECT_EQ(printed.code, 0) << arguments[0] << ": " << printed.err;
    EXPECT_THAT(printed.out, HasSubstr("-\xef\xbf\xbd\"")) << arguments[0];
  }
}

TEST(RunsCommandTest, ARunThatIsNamedTwiceIsRemovedOnce) {
  const tests::Folder runs;
  store::write_done(runs, "20260102-030405-a", 0.75);
  const auto removed = troupe_runs(runs, {"rm", "a", "20260102-030405-a", "a", "--yes"});
  EXPECT_EQ(removed.code, 0) << removed.err;
  EXPECT_EQ(std::ranges::count(removed.out, '\n'), 1) << removed.out;
}

TEST(RunsCommandTest, WrongFiltersAreOneLineAndForeignDirectoriesNoErrors) {
  const tests::Folder runs;
  store::write_done(runs, "20260102-030405-a", 0.75);
  runs.write("photos/cat.jpg", "");
  const auto wrong = troupe_runs(runs, {"list", "accuracy>"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(is_one_line(wrong)) << wrong.err;
  EXPECT_THAT(wrong.err, HasSubstr("column 10"));
  const auto listed = troupe_runs(runs, {"list"});
  EXPECT_EQ(listed.code, 0);
  EXPECT_THAT(listed.err, HasSubstr("photos: no run"));
  EXPECT_THAT(listed.out, HasSubstr("20260102-030405-a"));
  EXPECT_THAT(listed.out, Not(HasSubstr("photos")));
  EXPECT_THAT(troupe_runs(runs, {"rebuild"}).out, HasSubstr("1 run read"));
  EXPECT_EQ(troupe({"runs", "list", "--dir", runs.file("none")}).code, 78);
  const tests::Folder empty;
  EXPECT_EQ(troupe_runs(empty, {"list"}).out, "no runs\n");
}

/// What `troupe runs list` prints on a terminal of so many columns.
std::string listed_on_terminal(const tests::Folder& runs, unsigned short columns, std::vector<std::string> arguments) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  winsize size{};
  size.ws_row = 24;
  size.ws_col = columns;
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0) return "no terminal";
  const int program_side = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);  // keeps what was written until it is read
  ::ioctl(terminal, TIOCSWINSZ, &size);
  arguments.insert(arguments.begin(), {"runs", "list"});
  arguments.insert(arguments.end(), {"--dir", runs.path()});
  EXPECT_EQ(troupe(std::move(arguments), ::ptsname(terminal)).code, 0);
  std::string text(4096, ' ');  // less than what a terminal holds
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(terminal, text.data(), text.size()), 0)));
  ::close(program_side);
  ::close(terminal);
  std::erase(text, '\r');
  return text;
}

TEST(RunsCommandTest, OnANarrowTerminalTheLastColumnsAreLeftOutAndNamed) {
  const tests::Folder runs;
  store::write_done(runs, "20260102-030405-a-run-with-a-rather-long-name", 0.75);
  const auto narrow = listed_on_terminal(runs, 80, {});
  std::istringstream lines(narrow);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(narrow, HasSubstr("no room here for "));
  EXPECT_THAT(narrow, HasSubstr("tags: choose with --columns\n"));
  EXPECT_THAT(listed_on_terminal(runs, 200, {}), Not(HasSubstr("no room")));
  const auto chosen = listed_on_terminal(runs, 80, {"--columns", "run,status,strategy,model,epochs,started,tags"});
  EXPECT_THAT(chosen, Not(HasSubstr("no room"))) << "asked for, they are shown";
  EXPECT_THAT(troupe_runs(runs, {"list"}).out, Not(HasSubstr("no room"))) << "a pipe has any width";
}

}  // namespace
}  // namespace troupe::apps
