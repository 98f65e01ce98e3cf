#include "experiment/plot/gnuplot.hpp"

#include <cstdlib>
#include <optional>
#include <span>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/folder.hpp"
#include "tests/wait.hpp"

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

TEST(RenderTest, OnlyWholePicturesAreWhole) {
  const std::string png = "\x89PNG\r\n\x1a\n....IEND\xAE\x42\x60\x82", svg = "<?xml?><svg></g></svg>\n";
  EXPECT_TRUE(is_whole("png", png));
  EXPECT_TRUE(is_whole("svg", svg));
  for (const auto& format : formats())
    for (const auto& picture : {std::string(), png.substr(0, png.size() - 1), svg.substr(0, svg.size() - 2)})
      EXPECT_FALSE(is_whole(format, picture)) << format << ": " << picture;
}

/// A variable of the environment, for its lifetime.
class Variable {
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Variable() { before_ ? ::setenv(name_.c_str(), before_->c_str(), 1) : ::unsetenv(name_.c_str()); }

 private:
  const std::string name_;
  std::optional<std::string> before_;
};

/// A program called gnuplot is first on PATH, for its lifetime.
class OtherGnuplot {
 public:
  explicit OtherGnuplot(const std::string& script) : path_("PATH", folder_.path() + ":" + std::getenv("PATH")) {
    std::filesystem::permissions(folder_.write("gnuplot", "#!/bin/sh\n" + script), std::filesystem::perms::owner_all);
  }

 private:
  const Folder folder_;
  const Variable path_;
};

// The real gnuplot succeeds when the disk fills up while it writes.
TEST(RenderTest, APictureThatCouldNotBeWrittenWholeIsAnErrorAndKeepsTheOneBefore) {
  const Folder folder;
  const auto before = folder.write("out/b.png", "the picture before");
  const OtherGnuplot full_disk("printf '\\211PNG\\r\\n\\032\\n' > b.png\n");
  const auto paths = render({small()}, {folder.file("out"), {"png"}});
  ASSERT_FALSE(paths.has_value());
  EXPECT_EQ(paths.error().code, core::Errc::io);
  EXPECT_THAT(paths.error().message, HasSubstr("b.png"));
  EXPECT_EQ(folder.read("out/b.png"), "the picture before");
}

TEST(RenderTest, APictureIsPublishedAsTheCallerSays) {
  const Folder folder;
  const OtherGnuplot whole("printf '<svg></svg>\\n' > b.svg\n");
  std::string said;
  const auto paths = render({small()}, {.directory = folder.file("out"),
                                        .formats = {"svg"},
                                        .publish = [&](const std::string& directory, const std::string& name,
                                                       std::span<const std::span<const std::byte>> parts) {
                                          said = directory + "/" + name;
                                          EXPECT_EQ(parts[0].size(), 12U);
                                          return core::Result<void>(core::fail(core::Errc::no_space, "full"));
                                        }});
  ASSERT_FALSE(paths.has_value());
  EXPECT_EQ(paths.error().code, core::Errc::no_space);
  EXPECT_EQ(said, folder.file("out/b.svg"));
}

TEST(RenderTest, AStopEndsGnuplotAndLeavesNothingBehind) {
  const Folder folder;
  std::filesystem::create_directory(folder.file("temporary"));
  const OtherGnuplot endless("exec sleep 1000\n");
  const Variable temporaries("TMPDIR", folder.file("temporary"));
  std::stop_source stop;
  std::jthread later([&] {
    EXPECT_TRUE(tests::eventually([&] { return !std::filesystem::is_empty(folder.file("temporary")); }));
    stop.request_stop();
  });
  const auto paths = render({small()}, {.directory = folder.file("out"), .formats = {"png"}, .stop = stop.get_token()});
  ASSERT_FALSE(paths.has_value());
  EXPECT_EQ(paths.error().code, core::Errc::interrupted);
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("temporary")));
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
