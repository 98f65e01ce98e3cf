/// Uploads of data sets over HTTP, and what interrupts them.
#include <sys/mount.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/service/datasets/archives.hpp"
#include "tests/service/schema_check.hpp"
#include "tests/service/served.hpp"
#include "tests/wait.hpp"

namespace troupe::service {
namespace {

constexpr std::string_view kTarget = "/api/v1/datasets/digits/upload?kind=idx";

class UploadsTest : public testing::Test {
 protected:
  explicit UploadsTest(std::uint64_t limit = 1 << 20)
      : served_(Limits{}, Served::one_run, nullptr, UploadLimits{.bytes = limit, .at_once = 2}) {}

  Reply put(std::string_view target, std::string_view body, Role role = Role::admin) const {
    return served_.ask("PUT", target, role, body);
  }
  /// The head of an upload that says `length`.
  std::string head(std::string_view length, std::string_view target = kTarget) const {
    return fmt::format("PUT {} HTTP/1.1\r\nHost: 127.0.0.1\r\n{}{}\r\n\r\n", target, served_.authorization(Role::admin),
                       length);
  }
  nlohmann::json sets() const { return served_.get("/api/v1/datasets").json(); }
  /// Names in the folder of uploads.
  std::vector<std::string> folders() const {
    std::vector<std::string> names;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(served_.folder().file(".service/datasets"), ignored))
      names.push_back(entry.path().filename().string());
    return names;
  }
  void expect_nothing_stays() const {
    EXPECT_EQ(sets(), nlohmann::json::array());
    EXPECT_TRUE(tests::eventually([&] { return folders().empty(); })) << testing::PrintToString(folders());
  }
  void expect_next_upload_works() const { EXPECT_EQ(put(kTarget, whole_).status, 201); }

  const std::string whole_ = packed("tar.gz", idx_set());
  Served served_;
};

TEST_F(UploadsTest, AnUploadedSetIsRegisteredShownAndRemovedWithItsFiles) {
  const auto document = nlohmann::json::parse(served_.get("/api/v1/openapi.json").body);
  int count = 0;
  std::vector<std::string> removed;
  for (const auto* form : {"zip", "tar", "tar.gz", "tar.zst"})
    for (const auto* under : {"", "any name"}) {
      const auto name = fmt::format("größe-{}", ++count);
      const auto path = "/api/v1/datasets/" + percent_encoded(name);
      const auto added = put(path + "/upload?kind=idx", packed(form, idx_set(under)));
      ASSERT_EQ(added.status, 201) << form << ": " << added.body;
      EXPECT_EQ(misfit_of_answer(document, "put", "/api/v1/datasets/{name}/upload", 201, added.json()), "");
      EXPECT_EQ(added.json()["uploaded"], true);
      const auto facts = served_.get(path).json();
      EXPECT_EQ(facts["samples"], (nlohmann::json{{"train", 5}, {"test", 3}}));
      EXPECT_EQ(facts["shape"], (nlohmann::json{1, 2, 3}));
      const auto files = facts["path"].get<std::string>();
      EXPECT_TRUE(files.starts_with(served_.folder().file(".service/datasets/"))) << files;
      EXPECT_EQ(files.ends_with("any name"), under[0] != '\0');
      const auto sample = served_.get(path + "/samples/4.png");
      EXPECT_EQ(sample.body.substr(1, 3), "PNG");
      EXPECT_EQ(served_.ask("DELETE", path).status, 204);
      removed.push_back(files);
    }
  for (const auto& files : removed)
    EXPECT_TRUE(tests::eventually([&] { return !std::filesystem::exists(files); })) << files;
  expect_nothing_stays();
}

TEST_F(UploadsTest, AFolderThatWasRegisteredByItsPathKeepsItsFiles) {
  const auto path = served_.folder().file("own");
  for (const auto& file : idx_set()) served_.folder().write("own/" + file.name, file.text);
  const nlohmann::json body{{"name", "own"}, {"kind", "idx"}, {"path", path}};
  EXPECT_EQ(served_.ask("POST", "/api/v1/datasets", Role::admin, body.dump()).json()["uploaded"], false);
  EXPECT_EQ(served_.ask("DELETE", "/api/v1/datasets/own").status, 204);
  expect_next_upload_works();
  EXPECT_EQ(served_.ask("DELETE", "/api/v1/datasets/digits").status, 204);
  EXPECT_TRUE(tests::eventually([&] { return folders().empty(); }));
  EXPECT_TRUE(std::filesystem::exists(path + "/train-images-idx3-ubyte"));
}

TEST_F(UploadsTest, BodiesInChunksAndAfterExpectAreTaken) {
  Client chunks(served_.port());
  chunks.send(head("Transfer-Encoding: chunked"));
  for (std::size_t at = 0; at < whole_.size(); at += 50) {
    const auto piece = whole_.substr(at, 50);
    chunks.send(fmt::format("{:x}\r\n{}\r\n", piece.size(), piece));
  }
  chunks.send("0\r\n\r\n");
  EXPECT_EQ(chunks.receive().status, 201);
  chunks.send(request_text("GET", "/healthz"));
  EXPECT_EQ(chunks.receive().status, 200) << "the connection goes on";
  Client careful(served_.port());
  careful.send(head(fmt::format("Content-Length: {}\r\nExpect: 100-continue", whole_.size()),
                    "/api/v1/datasets/other/upload?kind=idx"));
  EXPECT_EQ(careful.receive_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  careful.send(whole_);
  EXPECT_EQ(careful.receive().status, 201);
  careful.send(head(fmt::format("Content-Length: {}\r\nExpect: 100-continue", whole_.size())));
  EXPECT_EQ(careful.receive().status, 409) << "before the body";
}

TEST_F(UploadsTest, BodiesBeyondTheLimitAreRefused) {
  Client said(served_.port());
  said.send(head("Content-Length: 1048577"));
  EXPECT_EQ(said.receive().status, 413);
  Client unsaid(served_.port());
  unsaid.send(head("Transfer-Encoding: chunked"));
  for (int i = 0; i < 20; ++i) unsaid.send(fmt::format("10000\r\n{}\r\n", std::string(0x10000, 'x')));
  EXPECT_EQ(unsaid.receive().status, 413);
  Client without(served_.port());
  without.send("PUT " + std::string(kTarget) + " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_EQ(without.receive().status, 401) << "before the body";
  // Of four times as many bytes of files as may be sent.
  const auto bomb = put(kTarget, packed("tar.gz", {{"a", std::string(std::size_t{5} << 20, '\0')}}));
  EXPECT_EQ(bomb.status, 400);
  EXPECT_THAT(bomb.body, testing::HasSubstr("more than 4194304 bytes of files"));
  expect_nothing_stays();
  expect_next_upload_works();
}

TEST_F(UploadsTest, WhatEndsEarlyLeavesNothing) {
  {
    Client half(served_.port());
    half.send(head(fmt::format("Content-Length: {}\r\nExpect: 100-continue", whole_.size())));
    EXPECT_NE(half.receive_until("\r\n\r\n"), "");
    half.send(whole_.substr(0, whole_.size() / 2));
    EXPECT_EQ(put(kTarget, whole_).status, 409);
  }
  EXPECT_TRUE(tests::eventually([&] { return put(kTarget, whole_).status == 201; })) << "the name is free again";
  EXPECT_EQ(served_.ask("DELETE", "/api/v1/datasets/digits").status, 204);
  expect_nothing_stays();
}

TEST_F(UploadsTest, ABodyThatIsLongerThanSaidIsTakenAsLongAsSaid) {
  Client client(served_.port());
  client.send(head(fmt::format("Content-Length: {}", whole_.size())) + whole_ + "and what is no request\r\n\r\n");
  EXPECT_EQ(client.receive().status, 201);
  EXPECT_EQ(client.receive().status, 400) << "the rest";
  EXPECT_EQ(sets().size(), 1U);
}

TEST_F(UploadsTest, HostileArchivesAndWrongFilesLeaveNothing) {
  const auto refused = [&](const std::string& body, std::string_view why, std::string_view target = kTarget) {
    const auto reply = put(target, body);
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_THAT(reply.body, testing::HasSubstr(std::string(why)));
    EXPECT_THAT(reply.body, testing::Not(testing::HasSubstr(served_.folder().path())));
    EXPECT_THAT(folders(), testing::IsEmpty()) << "when the answer is there";
  };
  refused(packed("tar", {{"../../users.json", "{}"}}), "leaves its folder");
  refused(packed("tar", {{"train", "", Packed::Kind::link, "/etc"}, {"train/x", "x"}}), "link");
  refused("no archive", "no zip and no tar");
  refused("", "no zip and no tar");
  auto set = idx_set();
  set.pop_back();
  refused(packed("zip", set), "digits");  // the name in place of the path
  refused(whole_, "kind", "/api/v1/datasets/digits/upload?kind=glyphs");
  refused(whole_, "kind", "/api/v1/datasets/digits/upload?kind=hickle");
  refused(whole_, "kind", "/api/v1/datasets/digits/upload");
  refused(whole_, "resize", "/api/v1/datasets/digits/upload?kind=folder&resize=-1");
  refused(whole_, "name", "/api/v1/datasets/a%2Fb/upload?kind=idx");
  EXPECT_EQ(put(kTarget, whole_, Role::run).status, 403);
  expect_nothing_stays();
  expect_next_upload_works();
}

TEST_F(UploadsTest, TheNameOfAnUploadIsFreeWhenItsAnswerIsThere) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(put(kTarget, "no archive").status, 400);
    Client large(served_.port());
    large.send(head("Transfer-Encoding: chunked") + fmt::format("{:x}\r\n{}", 2 << 20, std::string(2 << 20, 'x')));
    EXPECT_EQ(large.receive().status, 413);
    EXPECT_EQ(put(kTarget, whole_).status, 201);
    EXPECT_EQ(served_.ask("DELETE", "/api/v1/datasets/digits").status, 204);
  }
}

TEST_F(UploadsTest, OnlySomeUploadsAndOneOfANameExistAtOnce) {
  Client first(served_.port()), second(served_.port());
  const auto length = fmt::format("Content-Length: {}\r\nExpect: 100-continue", whole_.size());
  first.send(head(length));
  EXPECT_NE(first.receive_until("\r\n\r\n"), "");
  EXPECT_EQ(put(kTarget, whole_).status, 409);
  second.send(head(length, "/api/v1/datasets/second/upload?kind=idx"));
  EXPECT_NE(second.receive_until("\r\n\r\n"), "");
  EXPECT_EQ(put("/api/v1/datasets/third/upload?kind=idx", whole_).status, 503);
  second.send(whole_);
  EXPECT_EQ(second.receive().status, 201) << "the first, which waits, holds nobody up";
  first.send(whole_);
  EXPECT_EQ(first.receive().status, 201);
  EXPECT_EQ(put(kTarget, whole_).status, 409) << "the name is taken";
  EXPECT_EQ(sets().size(), 2U);
}

TEST_F(UploadsTest, ASlowBodyIsEnded) {
  Limits limits;
  limits.body_time = std::chrono::milliseconds(100);
  const Served served(limits);
  Client client(served.port());
  client.send(fmt::format("PUT {} HTTP/1.1\r\nHost: 127.0.0.1\r\n{}Content-Length: 1000\r\n\r\nx", kTarget,
                          served.authorization(Role::admin)));
  EXPECT_TRUE(client.is_closed_by_peer());
}

class NoUploadsTest : public UploadsTest {
 protected:
  NoUploadsTest() : UploadsTest(0) {}
};

TEST_F(NoUploadsTest, AServiceWithoutUploadsRefusesThem) {
  EXPECT_EQ(put(kTarget, "").status, 400);
  EXPECT_EQ(put(kTarget, whole_).status, 413);
  EXPECT_EQ(served_.get("/api/v1/server").json()["upload_limit"], 0);
}

TEST(UploadDiskTest, AFullDiskIsToldAndLeavesNothing) {
  const tests::Folder place;
  const auto disk = place.file("disk");
  std::filesystem::create_directories(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=4m") != 0) GTEST_SKIP() << "mounting a small disk needs root";
  {
    const auto registry = DatasetRegistry::open(disk + "/datasets.json").value();
    Uploads uploads(*registry, {});
    const DatasetEntry wanted{"digits", "idx", "", 0};
    EXPECT_EQ(uploads.begin(wanted, std::uint64_t{5} << 20).error().code, core::Errc::no_space) << "it says how long";
    const auto sent = uploads.begin(wanted, std::nullopt);
    ASSERT_TRUE(sent.has_value()) << sent.error().message;
    core::Result<void> written;
    for (int i = 0; i < 50 && written; ++i) written = (*sent)->write(std::string(100'000, 'x'));
    EXPECT_EQ(written.error().code, core::Errc::no_space);
  }
  {
    const auto registry = DatasetRegistry::open(disk + "/datasets.json").value();
    Uploads uploads(*registry, {});
    const auto sent = uploads.begin({"digits", "idx", "", 0}, std::nullopt).value();
    ASSERT_TRUE(sent->write(packed("tar.gz", {{"a", std::string(std::size_t{5} << 20, '\0')}})));
    const auto finished = sent->finish({});
    EXPECT_EQ(finished.error().code, core::Errc::no_space) << finished.error().message;
    uploads.tidy({});
    EXPECT_FALSE(std::filesystem::is_empty(disk + "/datasets")) << "it is still at work";
  }
  EXPECT_TRUE(std::filesystem::is_empty(disk + "/datasets"));
  std::filesystem::create_directories(disk + "/datasets/of a killed service");
  const auto registry = DatasetRegistry::open(disk + "/datasets.json").value();
  Uploads(*registry, {}).tidy({});
  EXPECT_TRUE(std::filesystem::is_empty(disk + "/datasets"));
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

}  // namespace
}  // namespace troupe::service
