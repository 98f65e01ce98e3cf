#include "service/datasets/sample_reader.hpp"

#include <algorithm>
#include <utility>

#include "data/images/encode.hpp"

namespace troupe::service {
namespace {

constexpr std::int64_t kMostSamples = std::int64_t{1} << 40;
constexpr std::int64_t kFewestOpened = 256;  // samples: a page shows fewer

}  // namespace

core::Result<std::shared_ptr<const data::Dataset>> SampleReader::opened(const DatasetEntry& entry, std::int64_t index,
                                                                        Time now) {
  const auto found = std::ranges::find(open_, entry, &Open::entry);
  if (found != open_.end() && (index < found->train->size() || found->train->size() < found->limit)) {
    found->used = now;
    std::rotate(found, found + 1, open_.end());
    return open_.back().train;
  }
  if (found != open_.end()) open_.erase(found);
  auto limit = kFewestOpened;  // samples behind it need not be drawn
  while (limit <= index) limit *= 2;
  auto train = open_split(entry, data::Split::train, limit);
  if (!train) return train;
  if (open_.size() >= kMostOpen) open_.erase(open_.begin());
  open_.push_back({entry, limit, *train, now});
  return train;
}

core::Result<std::optional<std::string>> SampleReader::png(const DatasetEntry& entry, std::int64_t index, Time now) {
  if (index < 0 || index >= kMostSamples) return std::nullopt;
  const auto train = opened(entry, index, now);
  if (!train) return tl::unexpected(train.error());
  if (index >= (*train)->size()) return std::nullopt;
  const auto shape = (*train)->shape();
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(shape.size()));
  if (const auto label = (*train)->read(index, pixels); !label) return tl::unexpected(label.error());
  const auto png = data::encode_png(shape, pixels);
  if (!png) return tl::unexpected(png.error());
  return std::string(png->begin(), png->end());
}

std::optional<std::chrono::milliseconds> SampleReader::close_idle(Time now) {
  std::erase_if(open_, [&](const Open& one) { return now - one.used >= kKept; });
  if (open_.empty()) return std::nullopt;
  return std::chrono::milliseconds(kKept);
}

}  // namespace troupe::service
