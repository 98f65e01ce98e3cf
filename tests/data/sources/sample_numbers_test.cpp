#include "data/sources/sample_numbers.hpp"

#include <array>

#include <gtest/gtest.h>

namespace troupe::data {
namespace {

DataConfig config_of(std::int64_t samples) {
  DataConfig config;
  config.name = "numbers";
  config.train_samples = samples;
  return config;
}

TEST(SampleNumbers, TheLabelOfASampleIsItsNumber) {
  const auto numbers = open_numbers(config_of(1000), Split::train, 0);
  ASSERT_TRUE(numbers) << numbers.error().message;
  EXPECT_EQ((*numbers)->size(), 1000);
  EXPECT_EQ((*numbers)->shape(), (ImageShape{1, 1, 1}));
  EXPECT_EQ((*numbers)->classes(), 1000);
  std::array<std::uint8_t, 1> pixel{9};
  for (const std::int64_t sample : {0, 7, 999}) {
    EXPECT_EQ((*numbers)->read(sample, pixel).value(), sample);
    EXPECT_EQ((*numbers)->label(sample).value(), sample);
    EXPECT_EQ(pixel[0], 0);
  }
}

TEST(SampleNumbers, TheTestSplitIsOneSample) {
  EXPECT_EQ(open_numbers(config_of(1000), Split::test, 0).value()->size(), 1);
}

TEST(SampleNumbers, ThereAreAsManyAsAnIntCounts) {
  EXPECT_EQ(open_numbers(config_of(2147483647), Split::train, 0).value()->size(), 2147483647);
  for (const std::int64_t samples : {std::int64_t{0}, std::int64_t{2147483648}}) {
    EXPECT_EQ(open_numbers(config_of(samples), Split::train, 0).error().code, core::Errc::config) << samples;
    EXPECT_EQ(numbers_form(config_of(samples)).error().code, core::Errc::config) << samples;
  }
  const auto form = numbers_form(config_of(50));
  ASSERT_TRUE(form);
}

}  // namespace
}  // namespace troupe::data
