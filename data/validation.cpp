#include "data/validation.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/random.hpp"

namespace troupe::data {

namespace {

constexpr std::string_view kFolder = "folder:";
constexpr std::int64_t kMostHeldOut = 1'000'000'000'000;

/// Some samples of another data set, by their indices there.
class PartOfDataset final : public Dataset {
 public:
  PartOfDataset(std::shared_ptr<const Dataset> whole, std::vector<std::uint32_t> indices)
      : whole_(std::move(whole)), indices_(std::move(indices)) {}
  [[nodiscard]] std::string name() const override { return whole_->name(); }
  [[nodiscard]] std::int64_t size() const noexcept override { return static_cast<std::int64_t>(indices_.size()); }
  [[nodiscard]] ImageShape shape() const noexcept override { return whole_->shape(); }
  [[nodiscard]] std::int32_t classes() const noexcept override { return whole_->classes(); }
  [[nodiscard]] std::vector<std::string> class_names() const override { return whole_->class_names(); }
  [[nodiscard]] core::Result<std::int32_t> read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    return whole_->read(place(index), pixels);
  }
  [[nodiscard]] core::Result<std::int32_t> read_augmented(std::int64_t index, const AugmentKey& key,
                                                          std::span<std::uint8_t> pixels) const override {
    return whole_->read_augmented(place(index), key, pixels);
  }
  [[nodiscard]] core::Result<std::int32_t> stored(std::int64_t index, std::vector<std::uint8_t>& bytes) const override {
    return whole_->stored(place(index), bytes);
  }
  [[nodiscard]] core::Result<std::int32_t> label(std::int64_t index) const override {
    return whole_->label(place(index));
  }
  [[nodiscard]] bool encoded() const noexcept override { return whole_->encoded(); }
  [[nodiscard]] bool streamed() const noexcept override { return whole_->streamed(); }
  [[nodiscard]] std::int64_t most_window() const noexcept override { return whole_->most_window(); }
  /// Files of which no sample is left do not count.
  [[nodiscard]] std::vector<std::int64_t> shard_begins() const override {
    std::vector<std::int64_t> begins;
    for (const auto begin : whole_->shard_begins()) {
      const auto first = std::ranges::lower_bound(indices_, begin, {}, [](std::uint32_t i) { return std::int64_t{i}; });
      if (first != indices_.end()) begins.push_back(first - indices_.begin());
    }
    const auto [rest, end] = std::ranges::unique(begins);
    begins.erase(rest, end);
    return begins;
  }

 private:
  [[nodiscard]] std::int64_t place(std::int64_t index) const { return indices_.at(static_cast<std::size_t>(index)); }

  std::shared_ptr<const Dataset> whole_;
  std::vector<std::uint32_t> indices_;  // ascending
};

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<Validation> parse_validation(std::string_view text) {
  if (text == "none") return Validation{};
  if (text.starts_with(kFolder) && text.size() > kFolder.size())
    return Validation{.folder = std::string(text.substr(kFolder.size()))};
  if (text.find('.') != std::string_view::npos) {
    const auto share = number_of<double>(text);
    return share && *share > 0 && *share < 1 ? std::optional(Validation{.share = *share}) : std::nullopt;
  }
  const auto count = number_of<std::int64_t>(text);
  return count && *count > 0 && *count <= kMostHeldOut ? std::optional(Validation{.count = *count}) : std::nullopt;
}

core::Rule validation_rule() {
  return {"\"none\" | \"0.1\" (a share) | \"5000\" (a count) | \"folder:PATH\"", [](const core::Value& value) {
            const auto* text = std::get_if<std::string>(&value);
            return text != nullptr && parse_validation(*text).has_value();
          }};
}

std::int64_t held_out(const Validation& validation, std::int64_t samples) {
  if (validation.count > 0) return validation.count;
  if (validation.share == 0) return 0;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(validation.share * static_cast<double>(samples)));
}

core::Result<HeldOut> hold_out(std::shared_ptr<const Dataset> train, const Validation& validation, std::uint64_t seed) {
  const auto samples = train->size();
  const auto count = held_out(validation, samples);
  if (count >= samples)
    return core::fail(core::Errc::config,
                      fmt::format("data.validation takes {} of the {} training samples, and leaves none to train with: "
                                  "hold fewer out",
                                  count, samples));
  // The first `count` places of a Fisher-Yates shuffle.
  std::vector<std::uint32_t> all(static_cast<std::size_t>(samples));
  std::iota(all.begin(), all.end(), 0U);
  core::Random random(seed, core::Purpose::validation, 0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
    std::swap(all[i], all[i + random.below(all.size() - i)]);
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<std::uint32_t> held(all.begin(), middle);
  all.erase(all.begin(), middle);
  std::ranges::sort(held);
  std::ranges::sort(all);
  return HeldOut{std::make_shared<const PartOfDataset>(train, std::move(all)),
                 std::make_shared<const PartOfDataset>(train, std::move(held))};
}

}  // namespace troupe::data
