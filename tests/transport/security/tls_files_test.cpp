#include "transport/security/tls_files.hpp"

#include <gtest/gtest.h>

#include "tests/folder.hpp"
#include "transport/security/authority.hpp"

namespace troupe::security {
namespace {

constexpr std::time_t kNow = 1'800'000'000;
constexpr std::time_t kDay = 24 * 3600;

class TlsFilesTest : public ::testing::Test {
 protected:
  TlsFilesTest() {
    EXPECT_TRUE(create_authority(directory_.path(), kNow, false));
    files_ = create_node(directory_.path(), "node", {}, kNow, false).value();
  }
  /// Expects that the check fails with one line that has these words.
  static void expect_refused(const TlsFiles& files, std::time_t now, std::initializer_list<std::string> words) {
    const auto checked = check(files, now);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, core::Errc::config);
    EXPECT_EQ(checked.error().message.find('\n'), std::string::npos);
    for (const std::string& word : words)
      EXPECT_NE(checked.error().message.find(word), std::string::npos) << checked.error().message;
  }
  tests::Folder directory_;
  TlsFiles files_;
};

TEST_F(TlsFilesTest, FreshFilesPassTheCheck) {
  EXPECT_TRUE(check(files_, kNow));
  EXPECT_TRUE(check(files_, kNow + 700 * kDay));
}

TEST_F(TlsFilesTest, IncompleteSetsAreRefused) {
  EXPECT_TRUE(check_complete({}));
  EXPECT_TRUE(check_complete(files_));
  expect_refused({.certificate = files_.certificate}, kNow, {"TLS", "authority", "key"});
  expect_refused({}, kNow, {"TLS"});
}

TEST_F(TlsFilesTest, ExpiredAndFutureCertificatesAreRefused) {
  expect_refused(files_, kNow + 800 * kDay, {files_.certificate, "expired", "troupe certs"});
  expect_refused(files_, kNow + 4000 * kDay, {files_.ca, "expired"});
  expect_refused(files_, kNow - kDay, {files_.ca, "not valid before", "clock"});
}

TEST_F(TlsFilesTest, FilesThatDoNotBelongTogetherAreRefused) {
  const tests::Folder elsewhere;
  ASSERT_TRUE(create_authority(elsewhere.path(), kNow, false));
  const TlsFiles other = create_node(elsewhere.path(), "node", {}, kNow, false).value();
  expect_refused({files_.ca, other.certificate, other.key}, kNow, {other.certificate, "not signed", files_.ca});
  expect_refused({files_.ca, files_.certificate, other.key}, kNow, {other.key, "does not belong", files_.certificate});
}

TEST_F(TlsFilesTest, UnreadableFilesAreRefused) {
  expect_refused({files_.ca, files_.certificate, directory_.file("none")}, kNow, {"none", "No such file"});
  expect_refused({files_.ca, files_.certificate, directory_.path()}, kNow, {directory_.path(), "not a regular file"});
  expect_refused({files_.ca, files_.key, files_.key}, kNow, {files_.key, "no certificate"});
  expect_refused({files_.ca, files_.certificate, files_.ca}, kNow, {files_.ca, "no key"});
  const std::string pem = directory_.read("node.pem");
  expect_refused({files_.ca, directory_.write("cut.pem", pem.substr(0, pem.size() / 2)), files_.key}, kNow,
                 {"cut.pem"});
}

}  // namespace
}  // namespace troupe::security
