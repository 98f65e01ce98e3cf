#include "core/text/plural.hpp"

#include <gtest/gtest.h>

namespace troupe::core {
namespace {

TEST(Plural, OneIsSingularAndEverythingElseIsNot) {
  EXPECT_EQ(counted(0, "worker"), "0 workers");
  EXPECT_EQ(counted(1, "worker"), "1 worker");
  EXPECT_EQ(counted(2, "worker"), "2 workers");
  EXPECT_EQ(counted(1, "hash", "hashes"), "1 hash");
  EXPECT_EQ(counted(200, "strategy", "strategies"), "200 strategies");
  EXPECT_EQ(noun(1, "run"), "run");
}

}  // namespace
}  // namespace troupe::core
