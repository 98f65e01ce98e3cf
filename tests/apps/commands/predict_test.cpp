// `troupe predict`: a picture of a sample is taken for what the sample is taken for, and bad files are one line.
#include <algorithm>
#include <map>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "core/random.hpp"
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

struct PngShape {
  std::int64_t width, height, channels;  // 1: grey, 3: RGB
};

/// A PNG of 8-bit values: signature, header, rows without filter, end (W3C, Portable Network Graphics). `pixels` [height, width, channels].
std::string png(std::span<const std::uint8_t> pixels, const PngShape& shape) {
  std::string rows;
  const auto row = static_cast<std::size_t>(shape.width * shape.channels);
  for (std::int64_t y = 0; y < shape.height; ++y) {
    rows += '\0';
    rows.append(reinterpret_cast<const char*>(pixels.data()) + static_cast<std::size_t>(y) * row, row);
  }
  uLongf size = ::compressBound(rows.size());
  std::string packed(size, '\0');
  ::compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()), rows.size());
  packed.resize(size);
  const char colours = shape.channels == 1 ? 0 : 2;
  return "\x89PNG\r\n\x1a\n" +
         png_chunk("IHDR" + big_endian(static_cast<std::uint32_t>(shape.width)) +
                   big_endian(static_cast<std::uint32_t>(shape.height)) + std::string{8, colours, 0, 0, 0}) +
         png_chunk("IDAT" + packed) + png_chunk("IEND");
}

std::string grey_png(std::span<const std::uint8_t> pixels, std::int64_t side) { return png(pixels, {side, side, 1}); }

/// (true class, prediction) → pictures, by the lines of `troupe predict --json` for pictures with these labels.
std::map<std::pair<int, int>, int> predicted_pairs(const std::string& out, const std::vector<int>& labels) {
  std::map<std::pair<int, int>, int> pairs;
  std::istringstream lines(out);
  std::size_t index = 0;
  for (std::string line; std::getline(lines, line); ++index)
    ++pairs[{labels.at(index), json::parse(line)["top"][0]["class"].get<int>()}];
  EXPECT_EQ(index, labels.size());
  return pairs;
}

/// The same by `troupe eval --classes --json`.
std::map<std::pair<int, int>, int> evaluated_pairs(const std::vector<std::string>& arguments) {
  auto command = arguments;
  command.insert(command.begin(), "eval");
  command.insert(command.end(), {"--json", "--classes"});
  const auto outcome = troupe(command);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::map<std::pair<int, int>, int> pairs;
  const auto report = json::parse(outcome.out);
  for (const auto& cell : report["confusion"]) pairs[{cell[0], cell[1]}] = cell[2];
  return pairs;
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
  const auto first = json::parse(outcome.out.substr(0, outcome.out.find('\n')));
  EXPECT_EQ(first["file"], command[2]);
  EXPECT_EQ(first["top"].size(), 5U);
  EXPECT_EQ(predicted_pairs(outcome.out, labels),
            evaluated_pairs({run_, "--set", "data.test_samples=" + std::to_string(kPictures)}));
}

// A device prepares the pictures as it prepares the images of an evaluation; a bad one leaves no gap among them.
TEST_F(PredictTest, ADevicePreparesPicturesWithTheSameResult) {
  constexpr std::int64_t kSide = 28;
  data::DataConfig glyphs;
  glyphs.name = "glyphs";
  const auto samples = data::open_dataset(glyphs, data::Split::test).value();
  std::vector<std::string> command{"predict", run_, "--json"};
  for (std::int64_t i = 0; i < 5; ++i) {
    std::vector<std::uint8_t> pixels(kSide * kSide);
    ASSERT_TRUE(samples->read(i, pixels));
    command.push_back(folder_.write(std::to_string(i) + ".png", i == 2 ? "no picture" : grey_png(pixels, kSide)));
  }
  std::vector<json> lines[2];
  for (const bool on_device : {false, true}) {
    if (on_device) command.insert(command.end(), {"--set", "cluster.device=cuda_on_host"});
    const auto outcome = troupe(command);
    EXPECT_EQ(outcome.code, 65) << outcome.err;
    std::istringstream out(outcome.out);
    for (std::string line; std::getline(out, line);) lines[on_device ? 1 : 0].push_back(json::parse(line));
    ASSERT_EQ(lines[on_device ? 1 : 0].size(), 5U);
  }
  for (std::size_t i = 0; i < 5; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(lines[0][i]["file"], lines[1][i]["file"]);
    if (i == 2) continue;
    for (std::size_t k = 0; k < 5; ++k)
      EXPECT_NEAR(lines[0][i]["top"][k]["score"].get<double>(), lines[1][i]["top"][k]["score"].get<double>(), 1e-4);
    EXPECT_EQ(lines[0][i]["top"][0]["class"], lines[1][i]["top"][0]["class"]);
  }
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

TEST_F(PredictTest, EveryBadFileIsNamedInItsBatch) {
  const std::vector<std::uint8_t> black(28 * 28);
  const auto good = folder_.write("good.png", grey_png(black, 28));
  std::vector<std::string> command{"predict", run_, "--json"};
  for (int i = 0; i < 30; ++i) command.push_back(folder_.write("bad" + std::to_string(i) + ".png", "no picture"));
  command.push_back(good);
  command.push_back(folder_.file("none.png"));
  const auto outcome = troupe(command);
  EXPECT_EQ(outcome.code, 65) << outcome.err;
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 31) << outcome.err;
  for (int i = 0; i < 30; ++i)
    EXPECT_NE(outcome.err.find("bad" + std::to_string(i) + ".png"), std::string::npos) << outcome.err;
  std::istringstream lines(outcome.out);
  int predicted = 0, refused = 0;
  for (std::string line; std::getline(lines, line);) ++(json::parse(line).contains("top") ? predicted : refused);
  EXPECT_EQ(predicted, 1);
  EXPECT_EQ(refused, 31);
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
  expect({"predict", run_, folder_.file("none.png")}, 65, "none.png");
  expect({"predict", run_}, 2, "IMAGE");
  expect({"predict", run_, folder_.write("a.png", whole), "--top", "0"}, 2, "--top");
}

// Pictures of any size, resized and cut as the run's evaluation does it, with the names of the folders.
TEST(Predict, PicturesOfAFolderAreTakenForWhatTheirEvaluationSays) {
  const TemporaryDirectory folder;
  const std::vector<std::string> names{"bird", "cat", "dog"};
  core::Random random(3, core::Purpose::initialise, 0);
  const auto draw = [&](const std::string& file, int label) {
    const PngShape shape{static_cast<std::int64_t>(14 + random.below(40)),
                         static_cast<std::int64_t>(14 + random.below(40)), 3};
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(shape.width * shape.height * 3));
    for (std::size_t i = 0; i < pixels.size(); ++i)  // the class is hardly to be seen: the model errs
      pixels[i] = static_cast<std::uint8_t>(random.below(200) + (static_cast<int>(i % 3) == label ? 20 : 0));
    return folder.write(file, png(pixels, shape));
  };
  std::vector<std::string> command{"predict", ""};
  std::vector<int> labels;
  for (int label = 0; label < 3; ++label)
    for (int i = 0; i < 12; ++i) {
      const auto name = "/" + names[static_cast<std::size_t>(label)] + "/" + std::to_string(i) + ".png";
      draw("data/train" + name, label);
      labels.push_back(label);
      command.push_back(draw("data/test" + name, label));
    }
  const auto config = folder.write("config.toml", R"([run]
name = "pictures"
epochs = 1
[model]
name = "mlp"
widths = [8]
[data]
name = "folder"
path = ")" + folder.file("data") + R"("
batch = 8
random_resized_crop = true
crop = 12
resize = 16
[train]
lr = 0.01
[strategy]
name = "bsp"
)");
  const auto trained = troupe({"train", config, "--json", "--quiet", "--set", "run.dir=" + folder.file("runs")});
  ASSERT_EQ(trained.code, 0) << trained.err;
  command[1] = json::parse(trained.out)["run"];
  command.emplace_back("--json");
  const auto outcome = troupe(command);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto pairs = predicted_pairs(outcome.out, labels);
  EXPECT_EQ(pairs, evaluated_pairs({command[1]}));
  EXPECT_GT(pairs.size(), 3U);  // not all pictures of a class are taken for one
  const auto top = json::parse(outcome.out.substr(0, outcome.out.find('\n')))["top"];
  ASSERT_EQ(top.size(), 3U);
  for (const auto& c : top) EXPECT_EQ(c["name"], names.at(c["class"].get<std::size_t>()));
}

}  // namespace
}  // namespace troupe::apps
