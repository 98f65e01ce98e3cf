// Whole data sets from a local server.
#include "apps/fetch/fetch.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>

#include <gtest/gtest.h>

#include "tests/apps/fetch/file_bytes.hpp"
#include "tests/apps/fetch/http_server.hpp"
#include "tests/folder.hpp"

namespace troupe::fetch {
namespace {

using core::Errc;
using testing::file_reply;
using testing::HttpServer;
using testing::read_file;
using testing::Reply;
using testing::Request;
using testing::sha256;
using testing::some_bytes;

struct Entry {
  std::string name, contents;
  unsigned type = AE_IFREG;
};

std::string tar_gz(const tests::Folder& folder, const std::vector<Entry>& entries) {
  const auto path = folder.file("made.tar.gz");
  const std::unique_ptr<archive, int (*)(archive*)> writer(archive_write_new(), archive_write_free);
  archive_write_add_filter_gzip(writer.get());
  archive_write_set_format_ustar(writer.get());
  EXPECT_EQ(archive_write_open_filename(writer.get(), path.c_str()), ARCHIVE_OK);
  for (const auto& [name, contents, type] : entries) {
    const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(archive_entry_new(), archive_entry_free);
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_filetype(entry.get(), type);
    archive_entry_set_perm(entry.get(), 0644);
    if (type == AE_IFLNK) archive_entry_set_symlink(entry.get(), contents.c_str());
    archive_entry_set_size(entry.get(), type == AE_IFREG ? static_cast<std::int64_t>(contents.size()) : 0);
    EXPECT_EQ(archive_write_header(writer.get(), entry.get()), ARCHIVE_OK);
    if (type == AE_IFREG) archive_write_data(writer.get(), contents.data(), contents.size());
  }
  archive_write_close(writer.get());
  return read_file(path);
}

PublishedFile published(const std::string& name, const std::string& contents) {
  return {name, contents.size(), sha256(contents)};
}

class Fetches : public ::testing::Test {
 protected:
  Fetches() {
    options_.download.http.variable = [](const char*) -> const char* { return nullptr; };
    options_.download.pause = std::chrono::milliseconds(1);
    options_.from = server_.address() + "/base";
  }
  core::Result<Fetched> run(const std::stop_token& stop = {}) {
    return fetch::fetch(
        dataset_, target(), options_,
        [this](std::string_view what, const std::string& file, std::uint64_t bytes, std::uint64_t all) {
          EXPECT_LE(bytes, all) << what << " " << file;
          done_.emplace(what);
        },
        stop);
  }
  core::Error failure() {
    const auto fetched = run();
    EXPECT_FALSE(fetched);
    return fetched ? core::Error{} : fetched.error();
  }
  [[nodiscard]] std::filesystem::path target() const { return folder_.file("new/folder"); }
  void serve(const std::string& name, const std::string& contents) { files_["/base/" + name] = contents; }
  void publish_two_files() {
    dataset_ = {.name = "two", .addresses = {}, .files = {published("a", a_), published("b", b_)}};
    serve("a", a_);
    serve("b", b_);
  }
  void publish_archive(const std::vector<Entry>& entries) {
    const auto archive = tar_gz(folder_, entries);
    dataset_ = {.name = "packed",
                .addresses = {},
                .files = {published("all.tar.gz", archive)},
                .members = {published("a.bin", a_), published("b.bin", b_)},
                .folder = "inner"};
    serve("all.tar.gz", archive);
  }

  const std::string a_ = some_bytes(300'000), b_ = some_bytes(1000, 7);
  tests::Folder folder_;
  std::map<std::string, std::string> files_;  // by target
  PublishedDataset dataset_;
  FetchOptions options_;
  std::set<std::string> done_;
  HttpServer server_{[this](const Request& request) {
    const auto file = files_.find(request.target);
    return file == files_.end() ? Reply{.status = 404} : file_reply(request, file->second);
  }};
};

TEST_F(Fetches, FilesArriveAndAreThereTheSecondTime) {
  publish_two_files();
  const auto first = run();
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->files, 2U);
  EXPECT_EQ(first->present, 0U);
  EXPECT_TRUE(read_file(target() / "a") == a_);
  EXPECT_TRUE(read_file(target() / "b") == b_);
  EXPECT_EQ(done_, (std::set<std::string>{"fetching"}));
  const auto requests = server_.requests().size();
  const auto second = run();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->present, 2U);
  EXPECT_EQ(server_.requests().size(), requests);
}

TEST_F(Fetches, OnlyMissingFilesAreFetched) {
  publish_two_files();
  ASSERT_TRUE(run());
  std::filesystem::remove(target() / "b");
  const auto fetched = run();
  ASSERT_TRUE(fetched);
  EXPECT_EQ(fetched->present, 1U);
  EXPECT_EQ(server_.requests().size(), 3U);
  EXPECT_EQ(server_.requests().back().target, "/base/b");
}

TEST_F(Fetches, OtherFileInTheWayIsKept) {
  publish_two_files();
  std::filesystem::create_directories(target());
  for (const auto& mine : {std::string("mine"), std::string(b_.size(), 'x')}) {
    std::ofstream(target() / "b") << mine;
    const auto error = failure();
    EXPECT_EQ(error.code, Errc::data);
    EXPECT_NE(error.message.find((target() / "b").string() + " is there, and is not the published file"),
              std::string::npos)
        << error.message;
    EXPECT_EQ(read_file(target() / "b"), mine);
  }
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(Fetches, ArchiveIsUnpackedAndGoes) {
  publish_archive({{"top/readme", "text"}, {"top/b.bin", b_}, {"top/a.bin", a_}});
  const auto first = run();
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_TRUE(read_file(target() / "inner/a.bin") == a_);
  EXPECT_TRUE(read_file(target() / "inner/b.bin") == b_);
  EXPECT_FALSE(std::filesystem::exists(target() / "all.tar.gz"));
  EXPECT_FALSE(std::filesystem::exists(target() / "inner/readme"));
  EXPECT_EQ(done_, (std::set<std::string>{"fetching", "unpacking"}));
  const auto second = run();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->present, 2U);
  EXPECT_EQ(server_.requests().size(), 1U);
}

TEST_F(Fetches, ArchiveThatIsThereIsNotFetchedAgain) {
  publish_archive({{"a.bin", a_}, {"b.bin", b_}});
  std::filesystem::create_directories(target());
  std::ofstream(target() / "all.tar.gz", std::ios::binary) << files_["/base/all.tar.gz"];
  const auto fetched = run();
  ASSERT_TRUE(fetched) << fetched.error().message;
  EXPECT_TRUE(read_file(target() / "inner/a.bin") == a_);
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(Fetches, EntriesOutsideTheFolderAndLinksWriteNothingThere) {
  publish_archive({{"../../b.bin", b_}, {"a.bin", "/etc/passwd", AE_IFLNK}, {"/tmp/x/a.bin", a_}});
  const auto fetched = run();
  ASSERT_TRUE(fetched) << fetched.error().message;
  EXPECT_TRUE(read_file(target() / "inner/a.bin") == a_);
  EXPECT_FALSE(std::filesystem::is_symlink(target() / "inner/a.bin"));
  EXPECT_FALSE(std::filesystem::exists(target() / "b.bin"));
  EXPECT_FALSE(std::filesystem::exists(folder_.file("b.bin")));
  EXPECT_FALSE(std::filesystem::exists("/tmp/x/a.bin"));
}

TEST_F(Fetches, MissingAndWrongMembersAreNamed) {
  publish_archive({{"a.bin", a_}});
  EXPECT_NE(failure().message.find("it has no b.bin"), std::string::npos);
  std::filesystem::remove_all(target());
  for (const auto& wrong : {b_ + "x", std::string(b_.size(), 'x')}) {
    publish_archive({{"b.bin", wrong}, {"a.bin", a_}});
    const auto error = failure();
    EXPECT_EQ(error.code, Errc::data);
    EXPECT_NE(error.message.find("its b.bin is not the published file"), std::string::npos) << error.message;
    EXPECT_FALSE(std::filesystem::exists(target() / "inner/b.bin"));
    std::filesystem::remove_all(target());
  }
}

TEST_F(Fetches, BrokenArchivesAreErrors) {
  const auto whole = tar_gz(folder_, {{"a.bin", a_}, {"b.bin", b_}});
  for (const auto& broken : {whole.substr(0, whole.size() / 2), std::string("no archive at all"), std::string("x")}) {
    publish_archive({});
    dataset_.files = {published("all.tar.gz", broken)};
    serve("all.tar.gz", broken);
    const auto error = failure();
    EXPECT_EQ(error.code, Errc::data);
    EXPECT_NE(error.message.find("the archive is broken"), std::string::npos) << error.message;
    std::filesystem::remove_all(target());
  }
}

TEST_F(Fetches, StopRequestEndsIt) {
  publish_two_files();
  std::stop_source source;
  source.request_stop();
  const auto fetched = run(source.get_token());
  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().code, Errc::interrupted);
}

TEST_F(Fetches, AddressThatIsNoneIsAnErrorBeforeAnythingElse) {
  publish_two_files();
  options_.from = "mirror.local/data";
  EXPECT_EQ(failure().code, Errc::usage);
  EXPECT_FALSE(std::filesystem::exists(target()));
}

TEST_F(Fetches, FolderThatCannotBeMadeIsAnError) {
  publish_two_files();
  std::ofstream(folder_.file("new")) << "a file";
  EXPECT_EQ(failure().code, Errc::io);
}

TEST_F(Fetches, MoreBytesThanTheDiskHasAreRefusedFirst) {
  publish_two_files();
  dataset_.files[0].bytes = std::uint64_t{1} << 60;
  const auto error = failure();
  EXPECT_EQ(error.code, Errc::no_space);
  EXPECT_TRUE(server_.requests().empty());
}

TEST(PublishedDatasets, HaveAddressesAndChecksums) {
  std::set<std::string> sums;
  for (const auto& dataset : published_datasets()) {
    EXPECT_EQ(find_published(dataset.name), &dataset);
    ASSERT_FALSE(dataset.addresses.empty());
    for (const auto& address : dataset.addresses) EXPECT_TRUE(parse_url(address)) << address;
    EXPECT_TRUE(dataset.members.empty() || dataset.files.size() == 1) << dataset.name;
    for (const auto* list : {&dataset.files, &dataset.members}) {
      for (const auto& file : *list) {
        EXPECT_EQ(file.sha256.size(), 64U) << file.name;
        EXPECT_EQ(file.sha256.find_first_not_of("0123456789abcdef"), std::string::npos) << file.name;
        EXPECT_TRUE(sums.insert(file.sha256).second) << file.name;
        EXPECT_GT(file.bytes, 0U);
      }
    }
  }
  EXPECT_EQ(find_published("imagenet"), nullptr);
}

}  // namespace
}  // namespace troupe::fetch
