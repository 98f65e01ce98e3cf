// `troupe predict`: a picture of a sample is taken for what the sample is taken for, and bad files are one line.
#include <algorithm>
#include <map>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "data/config.hpp"
#include "tests/apps/program.hpp"
#include "tests/small_config.hpp"

namespace troupe::apps {
namespace {

using nlohmann::json;

const std::string kPredictConfig = tests::small_config("[run]\nname = \"first\"\nepochs = 1", R"([train]
lr = 0.05
[strategy]
name = "bsp"
)");

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string png_chunk(const std::string& kind_and_data) {
  const auto crc =
      ::crc32(0, reinterpret_cast<const Bytef*>(kind_and_data.data()), static_cast<uInt>(kind_and_data.size()));
  return big_endian(static_cast<std::uint32_t>(kind_and_data.size()) - 4) + kind_and_data +
         big_endian(static_cast<std::uint32_t>(crc));
}

/// A PNG of 8-bit grey: signature, header, rows without filter, end (W3C, Portable Network Graphics).
std::string grey_png(std::span<const std::uint8_t> pixels, std::int64_t side) {
  std::string rows;
  for (std::int64_t y = 0; y < side; ++y) {
    rows += '\0';
    rows.append(reinterpret_cast<const char*>(pixels.data()) + y * side, static_cast<std::size_t>(side));
  }
  uLongf size = ::compressBound(rows.size());
  std::string packed(size, '\0');
  ::compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()), rows.size());
  packed.resize(size);
  const auto extent = big_endian(static_cast<std::uint32_t>(side));
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR" + extent + extent + std::string("\x08\0\0\0\0", 5)) +
         png_chunk("IDAT" + packed) + png_chunk("IEND");
}

class PredictTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto outcome = troupe({"train", config_, "--json", "--quiet", "--set", "run.dir=" + folder_.file("runs")});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    run_ = json::parse(outcome.out)["run"];
  }
  TemporaryDirectory folder_;
  std::string config_ = folder_.write("config.toml", kPredictConfig);
  std::string run_;
};

TEST_F(PredictTest, PicturesOfSamplesAreTakenForWhatTheSamplesAre) {
  constexpr std::int64_t kPictures = 40;  // more than a batch
  constexpr std::int64_t kSide = 28;
  data::DataConfig glyphs;
  glyphs.name = "glyphs";
  const auto samples = data::open_dataset(glyphs, data::Split::test);
  ASSERT_TRUE(samples) << samples.error().message;
  std::vector<std::string> command{"predict", run_};
  std::vector<int> labels;
  for (std::int64_t i = 0; i < kPictures; ++i) {
    std::vector<std::uint8_t> pixels(kSide * kSide);
    labels.push_back((*samples)->read(i, pixels).value());
    command.push_back(folder_.write(std::to_string(i) + ".png", grey_png(pixels, kSide)));
  }
  command.emplace_back("--json");
  const auto outcome = troupe(command);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::map<std::pair<int, int>, int> pairs;
  std::istringstream lines(outcome.out);
  std::size_t index = 0;
  for (std::string line; std::getline(lines, line); ++index) {
    const auto prediction = json::parse(line);
    EXPECT_EQ(prediction["file"], command.at(2 + index));
    ASSERT_EQ(prediction["top"].size(), 5U);
    ++pairs[{labels.at(index), prediction["top"][0]["class"].get<int>()}];
  }
  ASSERT_EQ(index, labels.size());
  const auto evaluated =
      troupe({"eval", run_, "--json", "--classes", "--set", "data.test_samples=" + std::to_string(kPictures)});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  std::map<std::pair<int, int>, int> expected;
  const auto report = json::parse(evaluated.out);
  for (const auto& cell : report["confusion"]) expected[{cell[0], cell[1]}] = cell[2];
  EXPECT_EQ(pairs, expected);
}

TEST_F(PredictTest, ProbabilitiesFallAndTheirNumberIsChosen) {
  const std::vector<std::uint8_t> black(64 * 64);  // another size than the model's images
  const auto picture = folder_.write("black.png", grey_png(black, 64));
  const auto outcome = troupe({"predict", run_, picture, "--json", "--top", "10"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto report = json::parse(outcome.out);
  const auto& top = report["top"];
  ASSERT_EQ(top.size(), 10U);
  double sum = 0;
  for (std::size_t i = 0; i < top.size(); ++i) {
    sum += top[i]["score"].get<double>();
    if (i > 0) {
      EXPECT_LE(top[i]["score"], top[i - 1]["score"]);
    }
  }
  EXPECT_NEAR(sum, 1, 1e-6);
  const auto table = troupe({"predict", run_, picture});
  EXPECT_EQ(std::ranges::count(table.out, '\n'), 6) << table.out;
}

TEST_F(PredictTest, OtherPicturesAreStillSeenWhereOneIsBad) {
  const std::vector<std::uint8_t> black(28 * 28);
  const auto good = folder_.write("good.png", grey_png(black, 28));
  const auto bad = folder_.write("bad.png", "no picture");
  const auto alone = troupe({"predict", run_, good, "--json"});
  const auto outcome = troupe({"predict", run_, bad, good, "--json"});
  EXPECT_EQ(outcome.code, 65) << outcome.err;
  EXPECT_NE(outcome.err.find("bad.png"), std::string::npos) << outcome.err;
  std::istringstream lines(outcome.out);
  std::string first;
  std::string second;
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_NE(json::parse(first)["error"].get<std::string>().find("bad.png"), std::string::npos) << first;
  EXPECT_EQ(json::parse(second), json::parse(alone.out));
}

TEST_F(PredictTest, BadFilesAreOneLineThatNamesThem) {
  const auto expect = [&](const std::vector<std::string>& arguments, int code, const std::string& why) {
    const auto outcome = troupe(arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_TRUE(is_one_line(outcome)) << outcome.err;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
  };
  const std::vector<std::uint8_t> black(28 * 28);
  const auto whole = grey_png(black, 28);
  expect({"predict", run_, folder_.write("text.jpg", "no picture")}, 65, "text.jpg");
  expect({"predict", run_, folder_.write("cut.png", whole.substr(0, whole.size() / 2))}, 65, "cut.png");
  expect({"predict", run_, folder_.write("empty.png", "")}, 65, "empty.png");
  expect({"predict", run_, folder_.file("none.png")}, 74, "none.png");
  expect({"predict", run_}, 2, "IMAGE");
  expect({"predict", run_, folder_.write("a.png", whole), "--top", "0"}, 2, "--top");
}

}  // namespace
}  // namespace troupe::apps
