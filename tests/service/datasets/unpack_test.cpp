#include "service/datasets/unpack.hpp"

#include <fcntl.h>
#include <langinfo.h>

#include <map>
#include <random>

#include <gmock/gmock.h>

#include "core/file_descriptor.hpp"
#include "service/datasets/utf8_names.hpp"
#include "tests/folder.hpp"
#include "tests/service/datasets/archives.hpp"

namespace troupe::service {
namespace {

constexpr UnpackLimits kRoomy{.bytes = std::uint64_t{64} << 20};

class UnpackTest : public testing::Test {
 protected:
  core::Result<std::uint64_t> take(std::string_view bytes, const UnpackLimits& limits = kRoomy) {
    into_ = folder_.file("disk/into-" + std::to_string(++count_));
    std::filesystem::create_directories(into_);
    const core::FileDescriptor file(::open(folder_.write("archive", bytes).c_str(), O_RDONLY | O_CLOEXEC));
    return unpack(file.get(), into_, limits, {});
  }
  /// What lies below the folder: folders end with "/".
  std::map<std::string, std::string> found() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(into_)) {
      const auto name = entry.path().lexically_relative(into_).string();
      if (entry.is_directory())
        all[name + "/"] = "";
      else
        all[name] = (std::ostringstream() << std::ifstream(entry.path()).rdbuf()).str();
    }
    return all;
  }
  /// Refused as damaged or hostile; nothing beside the folder was touched.
  void expect_refused(const std::string& bytes, std::string_view why, const UnpackLimits& limits = kRoomy) {
    const auto taken = take(bytes, limits);
    ASSERT_FALSE(taken.has_value()) << why;
    EXPECT_EQ(taken.error().code, core::Errc::data) << taken.error().message;
    EXPECT_THAT(taken.error().message, testing::HasSubstr(why));
    for (const auto& [name, text] : found()) EXPECT_FALSE(std::filesystem::is_symlink(into_ + "/" + name)) << name;
    EXPECT_EQ(folder_.entries(), 2U) << "the archive and the disk";
  }

  tests::Folder folder_;
  std::string into_;
  int count_ = 0;
};

TEST_F(UnpackTest, EachFormatGivesTheFilesThatWerePacked) {
  const std::vector<Packed> files{{"train/cat/1.png", "one"},
                                  {"train/größe/2.png", std::string(300'000, 'x')},
                                  {"./test/", "", Packed::Kind::folder},
                                  {"test/empty", ""}};
  const std::map<std::string, std::string> expected{{"train/", ""},
                                                    {"train/cat/", ""},
                                                    {"train/cat/1.png", "one"},
                                                    {"train/größe/", ""},
                                                    {"train/größe/2.png", std::string(300'000, 'x')},
                                                    {"test/", ""},
                                                    {"test/empty", ""}};
  const auto says_utf8 = packed("zip.utf8", {{"größe", "x"}});
  ASSERT_NE(static_cast<unsigned char>(says_utf8[7]) & 8U, 0U) << "bit 11 of a zip's flags (APPNOTE 4.4.4)";
  for (const auto* form : {"tar", "tar.gz", "tar.zst", "tar.pax", "zip", "zip.stored", "zip.utf8"}) {
    const auto bytes = take(packed(form, files));
    ASSERT_TRUE(bytes.has_value()) << form << ": " << bytes.error().message;
    EXPECT_EQ(*bytes, 300'003U) << form;
    EXPECT_EQ(found(), expected) << form;
  }
}

/// As some programs write it: the bytes of another code, and no word of which.
TEST_F(UnpackTest, NamesThatAreNotUtf8AreTakenAsTheyAre) {
  const std::string name =
      "gr\xf6\xdf"
      "e";
  for (const auto* form : {"tar", "zip"}) {
    ASSERT_TRUE(take(packed(form, {{name, "x"}}))) << form;
    EXPECT_EQ(found(), (std::map<std::string, std::string>{{name, "x"}})) << form;
  }
}

/// Numbers have points, not the commas of a user's language, also while an archive is read.
TEST(Utf8NamesTest, TheLocaleOfTheThreadIsRestored) {
  const auto before = ::uselocale(nullptr);
  {
    const Utf8Names utf8;
    EXPECT_STREQ(::nl_langinfo(CODESET), "UTF-8");
    EXPECT_STREQ(::nl_langinfo(RADIXCHAR), ".");
  }
  EXPECT_EQ(::uselocale(nullptr), before);
}

TEST_F(UnpackTest, HiddenFilesAndThoseOfMacsAreLeftOut) {
  ASSERT_TRUE(
      take(packed("zip", {{".DS_Store", "x"}, {"__MACOSX/a", "x"}, {"a/._b", "x"}, {".git/c", "x"}, {"d", "y"}})));
  EXPECT_EQ(found(), (std::map<std::string, std::string>{{"d", "y"}}));
}

TEST_F(UnpackTest, WaysOutOfTheFolderAreRefused) {
  for (const auto* form : {"tar", "zip"}) {
    for (const auto* name : {"../escaped", "a/../../escaped", "..", "a/.."})
      expect_refused(packed(form, {{name, "x"}}), "leaves its folder");
    expect_refused(packed(form, {{folder_.file("escaped"), "x"}}), "absolute path");
    expect_refused(packed(form, {{"a\\..\\b", "x"}}), form == std::string("zip") ? "leaves its folder" : "backslash");
    expect_refused(packed(form, {{"a\nb", "x"}}), "control character");
    expect_refused(packed(form, {{std::string(300, 'n'), "x"}}), "too long");
    std::string deep = "f";
    for (int level = 0; level < 20; ++level) deep = "d/" + deep;
    expect_refused(packed(form, {{deep, "x"}}), "too deep");
  }
}

TEST_F(UnpackTest, LinksDevicesAndPipesAreRefused) {
  const auto outside = folder_.path();
  expect_refused(packed("tar", {{"l", "", Packed::Kind::link, outside}, {"l/escaped", "x"}}), "link");
  expect_refused(packed("zip", {{"l", "", Packed::Kind::link, outside}, {"l/escaped", "x"}}), "link");
  expect_refused(packed("tar", {{"h", "", Packed::Kind::hard_link, "/etc/passwd"}}), "link");
  expect_refused(packed("tar", {{"d", "", Packed::Kind::device}}), "device");
  expect_refused(packed("tar", {{"p", "", Packed::Kind::fifo}}), "device");
}

TEST_F(UnpackTest, NamesThatComeTwiceAreRefused) {
  expect_refused(packed("tar", {{"a", "x"}, {"a", "y"}}), "twice");
  expect_refused(packed("tar", {{"a", "x"}, {"a/b", "y"}}), "twice");
  expect_refused(packed("tar", {{"a/b", "y"}, {"a", "x"}}), "twice");
}

TEST_F(UnpackTest, BombsEndAtTheLimitAndWriteNoMore) {
  const std::string zeros(std::size_t{8} << 20, '\0');
  for (const auto* form : {"tar.gz", "tar.zst", "zip"}) {
    const auto bomb = packed(form, {{"a", zeros}, {"b", zeros}});
    EXPECT_LT(bomb.size(), zeros.size() / 100);
    expect_refused(bomb, "more than 10000000 bytes", {.bytes = 10'000'000});
    std::uintmax_t written = 0;
    for (const auto& [name, text] : found()) written += text.size();
    EXPECT_LE(written, 10'000'000U);
  }
  const std::vector<Packed> many(50, {"folder", "", Packed::Kind::folder});
  expect_refused(packed("tar", many), "more than 20 entries", {.bytes = 100, .entries = 20});
  expect_refused(packed("tar.gz", {{"x", packed("tar.gz", {{"a", "x"}})}}).substr(0, 40), "");
}

TEST_F(UnpackTest, CompressionAroundCompressionIsRefused) {
  // gzip of a gzip: the writer adds its filters one behind the other, so the inner one is made here by hand, stored.
  const auto inner = packed("tar.gz", {{"a", "x"}});
  std::string outer("\x1f\x8b\x08\0\0\0\0\0\0\xff\x01", 11);  // one stored block follows
  const auto size = static_cast<unsigned>(inner.size());
  for (const unsigned value : {size, ~size})
    for (const unsigned shift : {0U, 8U}) outer += static_cast<char>(value >> shift & 0xffU);
  expect_refused(outer + inner + std::string(8, '\0'), "");
}

TEST_F(UnpackTest, ZipsPackedInAnotherWayAreRefused) {
  auto zip = packed("zip.stored", {{"a", "x"}});
  constexpr char kLzma = 14;
  const auto local = zip.find("PK\x03\x04"), central = zip.find("PK\x01\x02");
  ASSERT_NE(central, std::string::npos);
  zip[local + 8] = zip[central + 10] = kLzma;  // the method: 2 bytes
  expect_refused(zip, "deflate");
}

TEST_F(UnpackTest, WhatIsNoArchiveIsRefused) {
  for (const auto& bytes : {std::string(), std::string("hello"), std::string(100'000, 'x'), std::string(2048, '\0')})
    expect_refused(bytes, "");
  for (const auto* form : {"tar.gz", "tar.zst", "zip"}) {
    const auto whole = packed(form, {{"a", std::string(100'000, 'a')}, {"b", "x"}});
    expect_refused(whole.substr(0, whole.size() / 2), "");
  }
}

TEST_F(UnpackTest, ADeadlineAndTheEndOfTheServiceEndIt) {
  const auto tar = packed("tar", {{"a", "x"}});
  EXPECT_EQ(take(tar, {.bytes = 100, .deadline = {}}).error().code, core::Errc::timeout);
  const core::FileDescriptor file(::open(folder_.file("archive").c_str(), O_RDONLY | O_CLOEXEC));
  std::stop_source stop;
  stop.request_stop();
  std::filesystem::create_directories(folder_.file("disk/stopped"));
  EXPECT_EQ(unpack(file.get(), folder_.file("disk/stopped"), kRoomy, stop.get_token()).error().code,
            core::Errc::interrupted);
  EXPECT_EQ(take(tar, {.bytes = 100, .reserve = std::uint64_t{1} << 60}).error().code, core::Errc::no_space);
}

/// Archives with bytes changed, cut and doubled, by a fixed generator: files are within the folder and the limits, whatever the answer.
TEST_F(UnpackTest, RandomlyDamagedArchivesStayWithinTheFolder) {
  std::mt19937 random(19);  // NOLINT: the same bytes in every run
  const auto up_to = [&](std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(random); };
  std::vector<std::string> seeds;
  for (const auto* form : {"tar", "tar.gz", "tar.zst", "zip", "zip.stored"})
    seeds.push_back(packed(form, {{"train/a", "text of a"}, {"b", std::string(3000, 'b')}, {"../c", "x"}}));
  for (int round = 0; round < 400; ++round) {
    auto bytes = seeds[up_to(seeds.size() - 1)];
    for (auto change = up_to(8); change > 0 && !bytes.empty(); --change) {
      const auto at = up_to(bytes.size() - 1);
      switch (up_to(3)) {
        case 0: bytes[at] = static_cast<char>(up_to(255)); break;
        case 1: bytes.erase(at, up_to(64)); break;
        case 2: bytes.insert(at, bytes.substr(at, up_to(600))); break;
        default: bytes.resize(at);
      }
    }
    const auto taken = take(bytes, {.bytes = 100'000, .entries = 100});
    std::uintmax_t written = 0;
    for (const auto& [name, text] : found()) written += text.size();
    EXPECT_LE(written, 100'000U);
    EXPECT_TRUE(!taken || *taken == written);
    std::filesystem::remove_all(into_);
  }
  EXPECT_EQ(folder_.entries(), 2U) << "the archive and the disk";
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.file("disk")), {}), 0);
}

}  // namespace
}  // namespace troupe::service
