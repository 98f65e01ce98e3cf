#include "data/sources/sample_numbers.hpp"

#include <limits>

namespace troupe::data {
namespace {

class SampleNumbers final : public Dataset {
 public:
  explicit SampleNumbers(std::int64_t samples) : samples_(samples) {}

  [[nodiscard]] std::string name() const override { return "numbers"; }
  [[nodiscard]] std::int64_t size() const noexcept override { return samples_; }
  [[nodiscard]] ImageShape shape() const noexcept override { return {1, 1, 1}; }
  [[nodiscard]] std::int32_t classes() const noexcept override { return static_cast<std::int32_t>(samples_); }
  [[nodiscard]] core::Result<std::int32_t> read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    pixels[0] = 0;
    return static_cast<std::int32_t>(index);
  }
  [[nodiscard]] core::Result<std::int32_t> label(std::int64_t index) const override {
    return static_cast<std::int32_t>(index);
  }

 private:
  std::int64_t samples_;
};

core::Result<std::int64_t> numbers_of(const DataConfig& config) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (config.train_samples > 0 && config.train_samples <= kMost) return config.train_samples;
  return core::fail(core::Errc::config,
                    "data.name = \"numbers\" is for a program of your own (model.command), and data.train_samples its "
                    "number of samples: 1 to 2147483647");
}

}  // namespace

core::Result<std::shared_ptr<const Dataset>> open_numbers(const DataConfig& config, Split split, std::int64_t) {
  return numbers_of(config).map([&](std::int64_t samples) -> std::shared_ptr<const Dataset> {
    return std::make_shared<const SampleNumbers>(split == Split::train ? samples : 1);
  });
}

core::Result<PublishedForm> numbers_form(const DataConfig& config) {
  return numbers_of(config).map([](std::int64_t samples) {
    return PublishedForm{{1, 1, 1}, static_cast<std::int32_t>(samples), samples, 1};
  });
}

}  // namespace troupe::data
