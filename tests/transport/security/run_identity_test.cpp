#include "transport/security/run_identity.hpp"

#include <sys/stat.h>

#include <ctime>

#include <gtest/gtest.h>

#include "transport/security/private_file.hpp"
#include "transport/security/tls_context.hpp"

namespace troupe::security {
namespace {

constexpr std::time_t kDayOfRun = 24 * 3600;

TEST(RunIdentity, IsValidAndStaysInMemory) {
  const auto now = std::time(nullptr);
  const auto identity = make_run_identity({"10.0.0.11", "node1"}, now);
  ASSERT_TRUE(identity) << identity.error().message;
  const auto files = MemoryFiles::create(*identity);
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_EQ(read_file(files->files().key).value(), identity->key);
  struct stat key {};
  ASSERT_EQ(::stat(files->files().key.c_str(), &key), 0);
  EXPECT_EQ(key.st_mode & 0777U, kForOwner);
  EXPECT_EQ(key.st_nlink, 0U);
  const auto good = check(files->files(), now);
  EXPECT_TRUE(good) << good.error().message;
  EXPECT_TRUE(make_tls_context(files->files(), now));
  EXPECT_TRUE(check(files->files(), now + 89 * kDayOfRun));  // in a long run a connection may break late
  EXPECT_FALSE(check(files->files(), now + 91 * kDayOfRun));
}

TEST(RunIdentity, AnotherRunsIsRefused) {
  const auto now = std::time(nullptr);
  auto one = make_run_identity({}, now).value();
  one.ca = make_run_identity({}, now).value().ca;
  EXPECT_FALSE(check(MemoryFiles::create(one).value().files(), now));
}

}  // namespace
}  // namespace troupe::security
