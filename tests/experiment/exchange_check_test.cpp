#include "experiment/exchange_check.hpp"

#include <gtest/gtest.h>

namespace troupe::experiment {
namespace {

TEST(ExchangeCheck, AWireOf16BitsRoundsReductionsByAsaOnly) {
  using exchange::Algorithm;
  const auto algorithm = [](const char* named, const char* wire) {
    return reduction_algorithm({.algorithm = named, .wire = wire});
  };
  EXPECT_EQ(algorithm("auto", "fp32"), Algorithm::automatic);
  EXPECT_EQ(algorithm("asa", "fp32"), Algorithm::asa);
  for (const char* wire : {"fp16", "bf16"}) {
    EXPECT_EQ(algorithm("auto", wire), Algorithm::asa16);
    EXPECT_EQ(algorithm("asa", wire), Algorithm::asa16);
    EXPECT_EQ(algorithm("ring", wire), Algorithm::ring) << "it sums in float32";
    EXPECT_EQ(algorithm("ar", wire), Algorithm::ar);
  }
  EXPECT_EQ(algorithm("asa16", "fp32"), Algorithm::asa16);
}

}  // namespace
}  // namespace troupe::experiment
