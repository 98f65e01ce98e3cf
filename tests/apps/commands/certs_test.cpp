#include <sys/stat.h>

#include <gtest/gtest.h>

#include "tests/apps/program.hpp"
#include "transport/security/tls_files.hpp"

namespace troupe::apps {
namespace {

TEST(CertsTest, AuthorityAndNodePassTheCheck) {
  const TemporaryDirectory folder;
  const std::string directory = folder.file("certs");
  const auto init = troupe({"certs", "init", "--directory", directory});
  ASSERT_EQ(init.code, 0) << init.err;
  EXPECT_NE(init.out.find(directory + "/ca.pem"), std::string::npos);
  const auto node =
      troupe({"certs", "node", "node1", "--host", "10.0.0.11", "--host", "node1.local", "--directory", directory});
  ASSERT_EQ(node.code, 0) << node.err;
  const security::TlsFiles files{directory + "/ca.pem", directory + "/node1.pem", directory + "/node1.key"};
  const auto good = security::check(files, std::time(nullptr));
  EXPECT_TRUE(good) << good.error().message;
  for (const char* key : {"/ca.key", "/node1.key"}) {
    struct stat status {};
    ASSERT_EQ(::stat((directory + key).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u) << key;
  }
}

TEST(CertsTest, UnreadableDirectoryIsExit74) {
  const TemporaryDirectory folder;
  std::filesystem::create_symlink("loop", folder.file("loop"));  // to itself
  for (const auto& where : {folder.file("loop"), folder.file(std::string(300, 'x'))}) {
    const auto outcome = troupe({"certs", "init", "--directory", where});
    EXPECT_EQ(outcome.code, 74) << outcome.err;
    EXPECT_TRUE(is_one_line(outcome)) << outcome.err;
  }
}

TEST(CertsTest, NothingIsReplacedWithoutForce) {
  const TemporaryDirectory folder;
  const std::string directory = folder.file("certs");
  ASSERT_EQ(troupe({"certs", "init", "--directory", directory}).code, 0);
  ASSERT_EQ(troupe({"certs", "node", "n", "--directory", directory}).code, 0);
  const std::string authority = contents(directory + "/ca.pem"), node = contents(directory + "/n.key");
  for (const auto& outcome : {troupe({"certs", "init", "--directory", directory}),
                              troupe({"certs", "node", "n", "--directory", directory})}) {
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(is_one_line(outcome)) << outcome.err;
    EXPECT_NE(outcome.err.find("--force"), std::string::npos);
  }
  EXPECT_EQ(contents(directory + "/ca.pem"), authority);
  EXPECT_EQ(contents(directory + "/n.key"), node);
  EXPECT_EQ(troupe({"certs", "node", "n", "--directory", directory, "--force"}).code, 0);
  EXPECT_NE(contents(directory + "/n.key"), node);
}

TEST(CertsTest, FailuresAreOneLine) {
  const TemporaryDirectory folder;
  const std::string directory = folder.file("certs");
  const auto none = troupe({"certs", "node", "n", "--directory", directory});
  EXPECT_EQ(none.code, 78);
  EXPECT_TRUE(is_one_line(none)) << none.err;
  EXPECT_NE(none.err.find("troupe certs init"), std::string::npos) << none.err;
  ASSERT_EQ(troupe({"certs", "init", "--directory", directory}).code, 0);
  for (const char* name : {"../n", "ca", "", "a b"}) {
    const auto outcome = troupe({"certs", "node", name, "--directory", directory});
    EXPECT_EQ(outcome.code, 2) << name;
    EXPECT_TRUE(is_one_line(outcome)) << outcome.err;
  }
  EXPECT_EQ(troupe({"certs", "node", "n", "--host", "10.0.0.1:4242", "--directory", directory}).code, 2);
  EXPECT_EQ(troupe({"certs", "init", "--directory", folder.write("file", "") + "/x"}).code, 74);
}

}  // namespace
}  // namespace troupe::apps
