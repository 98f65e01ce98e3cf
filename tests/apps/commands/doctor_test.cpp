#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/apps/program.hpp"

namespace troupe::apps {
namespace {

TEST(DoctorTest, JsonListsTheFeaturesOfTheBuild) {
  const auto outcome = troupe({"doctor", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto found = nlohmann::json::parse(outcome.out);
  EXPECT_TRUE(found["cuda"]["built"].is_boolean());
  EXPECT_TRUE(found["cuda"]["devices"].is_number_integer());
  EXPECT_TRUE(found["mpi"]["built"].is_boolean());
  EXPECT_TRUE(found["ucx"]["built"].is_boolean());
  EXPECT_EQ(found["onednn"]["built"], true);
  EXPECT_TRUE(found["onednn"]["version"].get<std::string>().starts_with("2."));
  EXPECT_NE(found["onednn"]["isa"], "");
  EXPECT_TRUE(found["caf"]["version"].get<std::string>().starts_with("0.17."));
  EXPECT_GE(found["threads"].get<int>(), 1);
  EXPECT_GT(found["memory_bytes"].get<std::int64_t>(), 0);
}

TEST(DoctorTest, PlainReportNamesTheLibraries) {
  const auto outcome = troupe({"doctor"});
  EXPECT_EQ(outcome.code, 0);
  for (const auto* name : {"cpu", "memory", "oneDNN", "CAF"})
    EXPECT_NE(outcome.out.find(name), std::string::npos) << name;
}

}  // namespace
}  // namespace troupe::apps
