#include "transport/security/tls_files.hpp"

#include <gtest/gtest.h>

#include "tests/folder.hpp"
#include "transport/security/authority.hpp"

namespace troupe::security {
namespace {

constexpr std::time_t kNowOfFiles = 1'800'000'000;
constexpr std::time_t kDayOfFiles = 24 * 3600;

class TlsFilesTest : public ::testing::Test {
 protected:
  TlsFilesTest() {
    EXPECT_TRUE(create_authority(directory_.path(), kNowOfFiles, false));
    files_ = create_node(directory_.path(), "node", {}, kNowOfFiles, false).value();
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
  EXPECT_TRUE(check(files_, kNowOfFiles));
  EXPECT_TRUE(check(files_, kNowOfFiles + 700 * kDayOfFiles));
}

TEST_F(TlsFilesTest, IncompleteSetsAreRefused) {
  EXPECT_TRUE(check_complete({}));
  EXPECT_TRUE(check_complete(files_));
  expect_refused({.certificate = files_.certificate}, kNowOfFiles, {"TLS", "authority", "key"});
  expect_refused({}, kNowOfFiles, {"TLS"});
}

TEST_F(TlsFilesTest, ExpiredAndFutureCertificatesAreRefused) {
  expect_refused(files_, kNowOfFiles + 800 * kDayOfFiles, {files_.certificate, "expired", "troupe certs"});
  expect_refused(files_, kNowOfFiles + 4000 * kDayOfFiles, {files_.ca, "expired"});
  expect_refused(files_, kNowOfFiles - kDayOfFiles, {files_.ca, "not valid before", "clock"});
}

TEST_F(TlsFilesTest, FilesThatDoNotBelongTogetherAreRefused) {
  const tests::Folder elsewhere;
  ASSERT_TRUE(create_authority(elsewhere.path(), kNowOfFiles, false));
  const TlsFiles other = create_node(elsewhere.path(), "node", {}, kNowOfFiles, false).value();
  expect_refused({files_.ca, other.certificate, other.key}, kNowOfFiles, {other.certificate, "not signed", files_.ca});
  expect_refused({files_.ca, files_.certificate, other.key}, kNowOfFiles,
                 {other.key, "does not belong", files_.certificate});
}

TEST_F(TlsFilesTest, UnreadableFilesAreRefused) {
  expect_refused({files_.ca, files_.certificate, directory_.file("none")}, kNowOfFiles, {"none", "No such file"});
  expect_refused({files_.ca, files_.certificate, directory_.path()}, kNowOfFiles,
                 {directory_.path(), "not a regular file"});
  expect_refused({files_.ca, files_.key, files_.key}, kNowOfFiles, {files_.key, "no certificate"});
  expect_refused({files_.ca, files_.certificate, files_.ca}, kNowOfFiles, {files_.ca, "no key"});
  const std::string pem = directory_.read("node.pem");
  expect_refused({files_.ca, directory_.write("cut.pem", pem.substr(0, pem.size() / 2)), files_.key}, kNowOfFiles,
                 {"cut.pem"});
}

}  // namespace
}  // namespace troupe::security
