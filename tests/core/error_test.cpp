#include "core/error.hpp"

#include <cerrno>
#include <iterator>

#include <gtest/gtest.h>

namespace troupe::core {
namespace {

TEST(Error, EveryKindHasTheDocumentedExitCodeAndName) {
  const struct {
    Errc code;
    int exit;
    std::string_view name;
  } expected[] = {{Errc::usage, 2, "usage"},
                  {Errc::config, 78, "config"},
                  {Errc::data, 65, "data"},
                  {Errc::corrupt, 65, "corrupt"},
                  {Errc::io, 74, "io"},
                  {Errc::no_space, 74, "no_space"},
                  {Errc::timeout, 75, "timeout"},
                  {Errc::peer_lost, 75, "peer_lost"},
                  {Errc::diverged, 70, "diverged"},
                  {Errc::interrupted, 130, "interrupted"},
                  {Errc::internal, 70, "internal"},
                  {Errc::out_of_memory, 71, "out_of_memory"},
                  {Errc::program, 69, "program"}};
  ASSERT_EQ(std::size(expected), static_cast<std::size_t>(kLastErrc) + 1);
  for (std::size_t number = 0; number < std::size(expected); ++number)
    EXPECT_EQ(static_cast<std::size_t>(expected[number].code), number) << "kinds travel between processes by number";
  for (const auto& e : expected) {
    EXPECT_EQ(exit_code(e.code), e.exit) << e.name;
    EXPECT_EQ(name(e.code), e.name);
  }
}

TEST(Error, FailedSystemCallNamesCallPathAndReason) {
  const Error error = from_errno(ENOENT, "open", "data/mnist/labels");
  EXPECT_EQ(error.code, Errc::io);
  EXPECT_EQ(error.message, "cannot open data/mnist/labels: No such file or directory");
}

TEST(Error, FullDiskOrQuotaIsNoSpaceWithAdvice) {
  EXPECT_EQ(from_errno(EDQUOT, "write", "x").code, Errc::no_space);
  const Error error = from_errno(ENOSPC, "write", "runs/a/journal");
  EXPECT_EQ(error.code, Errc::no_space);
  EXPECT_EQ(error.message, "cannot write runs/a/journal: No space left on device (free some space and try again)");
}

TEST(Error, OutOfMemoryIsNotAFullDisk) {
  const Error error = from_errno(ENOMEM, "map", "/dev/shm/x");
  EXPECT_EQ(error.code, Errc::out_of_memory);
  EXPECT_EQ(error.message, "cannot map /dev/shm/x: Cannot allocate memory (free some memory and try again)");
}

TEST(Error, ResultsCarryEither) {
  const Result<int> good = 3;
  const Result<int> bad = fail(Errc::timeout, "worker 2 did not answer within 5 s");
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 3);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Errc::timeout);
  EXPECT_EQ(bad.error().message, "worker 2 did not answer within 5 s");
}

}  // namespace
}  // namespace troupe::core
