#include "data/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "data/files/npy.hpp"
#include "data/files/open_file.hpp"
#include "data/files/whole_file.hpp"

namespace troupe::data {
namespace {

using core::Errc;
using core::fail;
using core::Result;
using StatisticsJson = nlohmann::ordered_json;

/// Numbers in ]above, 1000[: others would overflow a float, or are those of no image.
bool usable(const std::vector<double>& values, std::size_t count, double above) {
  constexpr double kMost = 1e3;
  return values.size() == count && std::ranges::all_of(values, [&](double v) { return v > above && v < kMost; });
}

/// The mean image of other programs: bytes 0 to 255.
Result<Statistics> read_mean_image(const std::filesystem::path& path, ImageShape shape) {
  auto mean = read_npy_numbers(path);
  if (!mean) return tl::unexpected(std::move(mean.error()));
  const std::vector<std::int64_t> expected{shape.channels, shape.height, shape.width};
  if (mean->shape != expected || !usable(mean->values, mean->values.size(), -1e3))
    return fail(Errc::data, fmt::format("{}: a mean image of shape {}, and the images are {}: name the mean image of "
                                        "this data set (data.statistics)",
                                        path.string(), fmt::join(mean->shape, " x "), fmt::join(expected, " x ")));
  Statistics statistics;
  statistics.image_mean = std::move(mean->values);
  constexpr double kWhite = 255;
  for (auto& value : statistics.image_mean) value /= kWhite;
  const std::int64_t plane = shape.height * shape.width;
  for (auto at = statistics.image_mean.cbegin(); at != statistics.image_mean.cend(); at += plane)
    statistics.channel_mean.push_back(std::accumulate(at, at + plane, 0.0) / static_cast<double>(plane));
  return statistics;
}

}  // namespace

Result<void> write_statistics(const std::filesystem::path& path, const Statistics& statistics, ImageShape shape) {
  const StatisticsJson json{{"shape", {shape.channels, shape.height, shape.width}},
                            {"channel_mean", statistics.channel_mean},
                            {"channel_deviation", statistics.channel_deviation},
                            {"image_mean", statistics.image_mean}};
  const auto text = json.dump() + "\n";
  return write_whole(path, std::as_bytes(std::span(text)));
}

Result<Statistics> read_statistics(const std::filesystem::path& path, ImageShape shape) {
  if (path.extension() == ".npy") return read_mean_image(path, shape);
  const auto file = OpenFile::open(path);
  if (!file) return tl::unexpected(file.error());
  const auto bad = [&](std::string_view why) {
    return fail(Errc::data, fmt::format("{}: {}: make the file again (data.statistics)", path.string(), why));
  };
  constexpr std::uint64_t kMostBytesEach = 64, kMostBytesBeside = 1 << 20;  // of a number; of all else
  if (file->size() > kMostBytesBeside + kMostBytesEach * static_cast<std::uint64_t>(shape.size()))
    return bad("it is too large");
  std::vector<std::uint8_t> text(file->size());
  if (auto read = file->read(0, text); !read) return tl::unexpected(read.error());
  const auto json = StatisticsJson::parse(text, nullptr, false);
  Statistics statistics;
  try {
    json.at("channel_mean").get_to(statistics.channel_mean);
    json.at("channel_deviation").get_to(statistics.channel_deviation);
    json.at("image_mean").get_to(statistics.image_mean);
  } catch (const StatisticsJson::exception&) {
    return bad("no statistics of a data set");
  }
  constexpr double kLeastDeviation = 1e-7;  // measured ones are above 1e-6
  const auto channels = static_cast<std::size_t>(shape.channels);
  if (!usable(statistics.channel_mean, channels, -1e3) ||
      !usable(statistics.channel_deviation, channels, kLeastDeviation))
    return bad(fmt::format("its statistics are not those of {} channels", channels));
  if (!usable(statistics.image_mean, static_cast<std::size_t>(shape.size()), -1e3)) statistics.image_mean.clear();
  return statistics;
}

}  // namespace troupe::data
