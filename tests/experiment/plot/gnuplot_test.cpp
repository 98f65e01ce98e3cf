#include "experiment/plot/gnuplot.hpp"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/folder.hpp"

namespace troupe::plot {

using tests::Folder;
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Figure small() { return draw(BarChart{"b", "a title", "x", "y", {"0", "1"}, {"w"}, {{1, 2}}}); }

bool has_gnuplot() { return std::system("gnuplot --version >/dev/null 2>&1") == 0; }

std::string beginning(const std::string& path) {
  std::string bytes(8, ' ');
  std::ifstream(path, std::ios::binary).read(bytes.data(), 8);
  return bytes;
}

TEST(ScriptTest, DrawsEveryFormat) {
  const auto script = script_of(small(), {"png", "svg"}, "/some/where");
  EXPECT_THAT(script, HasSubstr("set terminal pngcairo"));
  EXPECT_THAT(script, HasSubstr("set output '/some/where/b.svg'"));
}

TEST(RenderTest, LeavesPicturesAndWithKeepTheirScriptsAndData) {
  if (!has_gnuplot()) GTEST_SKIP() << "gnuplot is not installed";
  const Folder folder;
  const auto paths = render({small()}, {folder.file("out"), {"png", "svg"}, true});
  ASSERT_TRUE(paths.has_value()) << paths.error().message;
  EXPECT_THAT(*paths, ElementsAre(folder.file("out/b.png"), folder.file("out/b.svg")));
  EXPECT_EQ(beginning(folder.file("out/b.png")), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(beginning(folder.file("out/b.svg")).substr(0, 5), "<?xml");
  EXPECT_TRUE(std::filesystem::exists(folder.file("out/gnuplot/b.gp")));
  EXPECT_TRUE(std::filesystem::exists(folder.file("out/gnuplot/b.dat")));
}

TEST(RenderTest, AScriptThatGnuplotRefusesIsAnError) {
  if (!has_gnuplot()) GTEST_SKIP() << "gnuplot is not installed";
  const Folder folder;
  const auto paths = render({Figure{"bad", 100, 100, {}, "plott nothing\n"}}, {folder.file("out"), {"png"}, false});
  ASSERT_FALSE(paths.has_value());
  EXPECT_THAT(paths.error().message, HasSubstr("gnuplot refused bad.gp"));
}

TEST(RenderTest, MissingGnuplotIsReportedInOneLine) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);
  const auto paths = render({small()}, {"unused", {"png"}, false});
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(paths.has_value());
  EXPECT_EQ(paths.error().code, core::Errc::config);
  EXPECT_THAT(paths.error().message, HasSubstr("gnuplot is not installed"));
  EXPECT_FALSE(std::filesystem::exists("unused"));
}

}  // namespace
}  // namespace troupe::plot
