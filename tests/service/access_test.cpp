#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <barrier>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/file_descriptor.hpp"
#include "service/access/gate.hpp"
#include "service/access/origin.hpp"
#include "service/access/token.hpp"
#include "service/access/users.hpp"
#include "tests/folder.hpp"

namespace troupe::service {
namespace {

using Clock = std::chrono::steady_clock;

TEST(TokenTest, HashIsSha256) {
  // sha256sum of "abc": FIPS 180-2, appendix B.1.
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(TokenTest, TokensDiffer) {
  std::set<std::string> all;
  for (int i = 0; i < 100; ++i) {
    all.insert(new_token());
    EXPECT_EQ(all.begin()->size(), 43U);
  }
  EXPECT_EQ(all.size(), 100U);
}

TEST(UsersTest, FileHasHashesAndOnlyItsOwnerReadsIt) {
  const tests::Folder folder;
  auto users = Users::open(folder.file("users.json")).value();
  EXPECT_TRUE(users.empty());
  const auto token = users.add("ann", Role::run).value();
  const auto text = folder.read("users.json");
  EXPECT_EQ(text.find(token), std::string::npos);
  EXPECT_NE(text.find(sha256_hex(token)), std::string::npos);
  struct stat status {};
  ASSERT_EQ(::stat(folder.file("users.json").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

// As under systemd, where the service has a user of its own and an administrator is root.
TEST(UsersTest, AFileThatRootChangesStaysTheServices) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  constexpr uid_t kOther = 65534;
  const tests::Folder folder;
  const auto path = folder.file("users.json");
  auto users = Users::open(path).value();
  ASSERT_TRUE(users.add("ann", Role::run));
  ASSERT_EQ(::chown(path.c_str(), kOther, kOther), 0);
  ASSERT_TRUE(users.add("bob", Role::read));
  ASSERT_TRUE(users.remove("ann"));
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, kOther);
  EXPECT_EQ(status.st_gid, kOther);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST(UsersTest, TokenFindsItsUserAlsoInAnotherProcess) {
  const tests::Folder folder;
  auto users = Users::open(folder.file("users.json")).value();
  const auto ann = users.add("ann", Role::run).value();
  const auto bob = users.add("bob", Role::admin).value();
  const auto again = Users::open(folder.file("users.json")).value();
  EXPECT_EQ(again.find(ann, Clock::now())->name, "ann");
  EXPECT_EQ(again.find(bob, Clock::now())->role, Role::admin);
  EXPECT_FALSE(again.find(ann + "x", Clock::now()));
  EXPECT_FALSE(again.find("", Clock::now()));
  EXPECT_FALSE(again.find(sha256_hex(ann), Clock::now()));
}

TEST(UsersTest, ChangesOfAnotherProcessAreSeenAfterASecond) {
  const tests::Folder folder;
  auto cli = Users::open(folder.file("users.json")).value();
  const auto ann = cli.add("ann", Role::run).value();
  const auto service = Users::open(folder.file("users.json")).value();
  const auto now = Clock::now();
  EXPECT_TRUE(service.find(ann, now));
  ASSERT_TRUE(cli.remove("ann"));
  EXPECT_FALSE(service.find(ann, now + std::chrono::seconds(2)));
}

TEST(UsersTest, NamesAreTakenOnce) {
  const tests::Folder folder;
  auto users = Users::open(folder.file("users.json")).value();
  ASSERT_TRUE(users.add("ann", Role::run));
  EXPECT_FALSE(users.add("ann", Role::read));
  EXPECT_FALSE(users.add("", Role::read));
  EXPECT_FALSE(users.add("a b", Role::read));
  EXPECT_FALSE(users.remove("bob"));
}

/// Each writer is as a process of its own: they share nothing but the file. Every round one writer adds a user while the other removes one.
TEST(UsersTest, ChangesOfSeveralProcessesAtOnceAreAllKept) {
  const tests::Folder folder;
  const auto path = folder.file("users.json");
  constexpr int kRounds = 30;
  auto first = Users::open(path).value(), second = Users::open(path).value();
  std::barrier both(2);
  const auto work = [&](Users& users, const std::string& own) {
    std::string failed;
    for (int round = 0; round < kRounds; ++round) {
      both.arrive_and_wait();
      if (const auto added = users.add(fmt::format("{}{}", own, round), Role::read); !added)
        failed += added.error().message;
      if (round % 2 == 0) continue;
      if (const auto removed = users.remove(fmt::format("{}{}", own, round - 1)); !removed)
        failed += removed.error().message;
    }
    EXPECT_EQ(failed, "");
  };
  std::thread other([&] { work(second, "b"); });
  work(first, "a");
  other.join();
  std::set<std::string> kept, expected;
  const auto users = parse_users(folder.read("users.json"), path).value();
  for (const auto& user : users) kept.insert(user.name);
  for (int round = 1; round < kRounds; round += 2)
    for (const auto* own : {"a", "b"}) expected.insert(fmt::format("{}{}", own, round));
  EXPECT_EQ(kept, expected);
}

TEST(UsersTest, AChangeThatDoesNotEndIsAnErrorInTheOther) {
  const tests::Folder folder;
  auto users = Users::open(folder.file("users.json"), std::chrono::milliseconds(1)).value();
  const core::FileDescriptor other(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  EXPECT_EQ(users.add("ann", Role::run).error().code, core::Errc::timeout);
  EXPECT_EQ(users.remove("ann").error().code, core::Errc::timeout);
  ASSERT_EQ(::flock(other.get(), LOCK_UN), 0);
  EXPECT_TRUE(users.add("ann", Role::run));
}

TEST(UsersTest, DamagedFileIsAnErrorThatNamesIt) {
  const tests::Folder folder;
  for (const auto* text : {"", "[]", "{\"users\": [1]}", "{\"users\": [{\"name\": \"a\", \"role\": \"king\"}]}"}) {
    const auto path = folder.write("users.json", text);
    const auto users = Users::open(path);
    ASSERT_FALSE(users) << text;
    EXPECT_EQ(users.error().code, core::Errc::corrupt);
    EXPECT_NE(users.error().message.find(path), std::string::npos);
  }
}

TEST(OriginTest, HostIsTheNameWithoutThePort) {
  EXPECT_EQ(host_of("Example.ORG:8080"), "example.org");
  EXPECT_EQ(host_of("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(host_of("[::1]:80"), "::1");
  for (const auto* text : {"", ":80", "a:b", "a:", "a,b", "a b", "[::1", "[::1]x", "user@host", "a/b", "a:123456"})
    EXPECT_EQ(host_of(text), "") << text;
}

TEST(OriginTest, LoopbackHasItsNames) {
  const auto own = hosts_of_service("127.0.0.1", {"Train.example.org"});
  for (const auto* host : {"127.0.0.1:8080", "localhost", "[::1]:1", "train.example.org:443"})
    EXPECT_TRUE(is_own_host(host, own)) << host;
  for (const auto* host : {"evil.example", "127.0.0.1.evil.example", "", "localhost.", "127.0.0.1,evil"})
    EXPECT_FALSE(is_own_host(host, own)) << host;
  EXPECT_FALSE(is_own_host("localhost", hosts_of_service("10.0.0.1", {})));
}

TEST(OriginTest, APageOfAnotherPortIsForeign) {
  EXPECT_TRUE(is_same_origin("http://127.0.0.1:8080", "127.0.0.1:8080"));
  EXPECT_TRUE(is_same_origin("https://Train.example.org", "train.example.org"));
  for (const auto* origin : {"http://127.0.0.1:3000", "http://127.0.0.1", "null", "", "file://", "http://evil.example",
                             "http://127.0.0.1:8080/", "ftp://127.0.0.1:8080", "http://127.0.0.1:8080.evil.example"})
    EXPECT_FALSE(is_same_origin(origin, "127.0.0.1:8080")) << origin;
}

TEST(CookieTest, FindsTheWholeName) {
  EXPECT_EQ(cookie_value("a=1; troupe_token=xyz; b=2", kCookie), "xyz");
  EXPECT_EQ(cookie_value("troupe_token=xyz", kCookie), "xyz");
  for (const auto* header : {"", "troupe_token", "xtroupe_token=1", "troupe_tokens=1", "a=troupe_token=1"})
    EXPECT_EQ(cookie_value(header, kCookie), "") << header;
}

}  // namespace
}  // namespace troupe::service
