#include "apps/shell/manual.hpp"

#include <regex>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "experiment/settings.hpp"
#include "tests/apps/program.hpp"

namespace troupe::apps {
namespace {

using testing::HasSubstr;

std::vector<ManualPage> all_pages() {
  CLI::App app(program().summary, program().name);
  return manual(declare_all(app));
}

/// The words of a command, from the name of its page: no command has "-" in its name.
std::vector<std::string> words_of_page(const std::string& name) {
  std::vector<std::string> words;
  for (std::size_t begin = name.find('-'); begin != std::string::npos;) {
    const auto end = name.find('-', begin + 1);
    words.push_back(name.substr(begin + 1, end == std::string::npos ? end : end - begin - 1));
    begin = end;
  }
  return words;
}

TEST(ManualTest, TextStaysWhatItIs) {
  EXPECT_EQ(roff_text(".a\n'b'"), "\\&.a\n\\(aqb\\(aq");
  EXPECT_EQ(roff_text("a\\n `c` --x \"d\" ~^"), "a\\en \\(gac\\(ga \\-\\-x \\(dqd\\(dq \\(ti\\(ha");
  EXPECT_EQ(roff_text("≥ é 🙂"), "\\[u2265] \\[u00E9] \\[u1F642]");
}

/// What the parser has is what the help, another form of it, says.
TEST(ManualTest, EveryFlagOfTheHelpIsOnThePageOfItsCommand) {
  std::size_t flags = 0;
  for (const auto& page : all_pages()) {
    if (page.section != 1) continue;
    auto command = words_of_page(page.name);
    command.emplace_back("--help");
    const auto help = troupe(command);
    ASSERT_EQ(help.code, 0) << page.name << help.err;
    const std::regex flag("\n  (?:-[a-z], )?(--[a-z][a-z-]*)");
    for (std::sregex_iterator found(help.out.begin(), help.out.end(), flag), end; found != end; ++found, ++flags)
      EXPECT_THAT(page.text, HasSubstr(roff_text((*found)[1].str()))) << page.name;
  }
  EXPECT_GT(flags, 100u);
}

TEST(ManualTest, EveryKeyIsOnThePageOfTheConfiguration) {
  const auto pages = all_pages();
  const auto& page = pages[pages.size() - 2];
  ASSERT_EQ(page.name, "troupe-config");
  for (const auto& option : experiment::schema().options())
    EXPECT_THAT(page.text,
                HasSubstr(fmt::format("\\fB{}\\fR", roff_text(option.key.substr(option.key.rfind('.') + 1)))));
}

TEST(ManualTest, EveryExitCodeIsOnEveryPage) {
  for (const auto& page : all_pages())
    for (int code = 0; page.section == 1 && code <= static_cast<int>(core::kLastErrc); ++code)
      EXPECT_THAT(page.text, HasSubstr(fmt::format(".TP\n{}\n", core::exit_code(static_cast<core::Errc>(code)))));
}

TEST(ManualTest, TheCommandPrintsAPageOrWritesAll) {
  EXPECT_THAT(troupe({"man", "runs", "list"}).out, HasSubstr(".TH \"TROUPE\\-RUNS\\-LIST\" \"1\""));
  const auto wrong = troupe({"man", "trian"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("troupe-train"));
  const tests::Folder folder;
  EXPECT_EQ(troupe({"man", "--all", folder.path()}).code, 0);
  for (const auto& page : all_pages())
    EXPECT_EQ(folder.read(fmt::format("man{0}/{1}.{0}", page.section, page.name)), page.text);
}

}  // namespace
}  // namespace troupe::apps
