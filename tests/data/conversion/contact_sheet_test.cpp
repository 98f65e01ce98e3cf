#include "data/conversion/contact_sheet.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/images/decode.hpp"
#include "data/images/encode.hpp"

namespace troupe::data {
namespace {

using testing::Each;
using testing::HasSubstr;

/// Images of one level: 10 times their number, and 100 more times the epoch when augmented. Sample 3 is unreadable.
class FlatImages final : public Dataset {
 public:
  [[nodiscard]] std::string name() const override { return "flat"; }
  [[nodiscard]] std::int64_t size() const noexcept override { return 5; }
  [[nodiscard]] ImageShape shape() const noexcept override { return {1, 4, 8}; }
  [[nodiscard]] std::int32_t classes() const noexcept override { return 2; }
  [[nodiscard]] core::Result<std::int32_t> read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    if (index == 3) return core::fail(core::Errc::data, "sample 3");
    std::ranges::fill(pixels, static_cast<std::uint8_t>(10 * index));
    return 0;
  }
  [[nodiscard]] core::Result<std::int32_t> read_augmented(std::int64_t index, const AugmentKey& key,
                                                          std::span<std::uint8_t> pixels) const override {
    std::ranges::fill(pixels, static_cast<std::uint8_t>(10 * index + 100 * key.epoch));
    return 0;
  }
};

/// Channel c of the sheet at column x of row y.
int at(const ContactSheet& sheet, std::int64_t c, std::int64_t y, std::int64_t x) {
  return sheet.pixels.at(static_cast<std::size_t>((c * sheet.shape.height + y) * sheet.shape.width + x));
}

TEST(ContactSheetTest, ImagesStandInTheirCells) {
  const auto sheet = contact_sheet(FlatImages(), {{1, 2}, {3}, {4}}, 16).value();
  // Cells of 16, each 2 from the one before; images twice as wide as high.
  ASSERT_EQ(sheet.shape, (ImageShape{3, 3 * 18 + 2, 2 * 18 + 2}));
  for (std::int64_t c = 0; c < 3; ++c) {
    EXPECT_EQ(at(sheet, c, 2, 2), 10);
    EXPECT_EQ(at(sheet, c, 9, 17), 10);
    EXPECT_EQ(at(sheet, c, 10, 2), 255);
    EXPECT_EQ(at(sheet, c, 2, 18), 255);
    EXPECT_EQ(at(sheet, c, 2, 20), 20);
    EXPECT_EQ(at(sheet, c, 20, 2), 255);  // unreadable
    EXPECT_EQ(at(sheet, c, 38, 2), 40);
  }
}

TEST(ContactSheetTest, ColumnsOfAugmentedImagesAreEpochs) {
  const AugmentKey key{1, 0};
  const auto sheet = contact_sheet(FlatImages(), {{2, 2, 2}}, 8, &key).value();
  for (std::int64_t k = 0; k < 3; ++k) EXPECT_EQ(at(sheet, 0, 3, 3 + 10 * k), 20 + 100 * k);
}

TEST(ContactSheetTest, ASheetOfAnAbsurdSizeIsRefused) {
  const std::vector<std::vector<std::int64_t>> rows(20, std::vector<std::int64_t>(100, 0));
  const auto sheet = contact_sheet(FlatImages(), rows, 1024);
  ASSERT_FALSE(sheet);
  EXPECT_EQ(sheet.error().code, core::Errc::config);
  EXPECT_THAT(sheet.error().message, HasSubstr("too large: fewer columns, or smaller cells"));
}

}  // namespace
}  // namespace troupe::data
