#include "data/conversion/contact_sheet.hpp"

#include <gtest/gtest.h>

#include "tests/data/numbered_dataset.hpp"

namespace troupe::data {
namespace {

constexpr std::int64_t kStep = 4 + 2;  // a cell and its border

std::uint8_t pixel(const ContactSheet& sheet, std::int64_t channel, std::int64_t y, std::int64_t x) {
  return sheet.pixels.at(static_cast<std::size_t>((channel * sheet.shape.height + y) * sheet.shape.width + x));
}

TEST(ContactSheetTest, CellsHaveTheImagesAndBordersAreWhite) {
  const NumberedDataset data(20, {3, 4, 4});
  const auto sheet = contact_sheet(data, {{0, 1, 2}, {9}}, 4).value();
  EXPECT_EQ(sheet.shape, (ImageShape{3, 2 * kStep + 2, 3 * kStep + 2}));
  for (std::int64_t c = 0; c < 3; ++c) {
    EXPECT_EQ(pixel(sheet, c, 2, 2), 16 * c);                      // sample 0, (0, 0)
    EXPECT_EQ(pixel(sheet, c, 3, 2 + kStep + 1), 7 + 16 * c + 5);  // sample 1, (1, 1)
    EXPECT_EQ(pixel(sheet, c, 2 + kStep, 2), 63 + 16 * c);         // sample 9
    EXPECT_EQ(pixel(sheet, c, 0, 0), 255);
    EXPECT_EQ(pixel(sheet, c, 2 + kStep, 2 + kStep), 255) << "an empty cell";
  }
}

TEST(ContactSheetTest, GreyImagesAndOtherSidesFit) {
  const auto sheet = contact_sheet(NumberedDataset(3, {1, 2, 8}), {{1}}, 4).value();
  EXPECT_EQ(pixel(sheet, 0, 2, 2), pixel(sheet, 2, 2, 2));
  EXPECT_LT(pixel(sheet, 0, 2, 5), 255);
  EXPECT_EQ(pixel(sheet, 0, 3, 2), 255) << "one row high";
}

TEST(ContactSheetTest, ABrokenSampleIsAnError) {
  EXPECT_FALSE(contact_sheet(NumberedDataset(3, {1, 2, 2}, 1), {{0, 1}}, 4));
}

}  // namespace
}  // namespace troupe::data
