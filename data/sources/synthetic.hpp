/// Images drawn from a seed, of any shape and number of classes: each class has a pattern of 8 x 8 fields per channel, to which noise is
/// added. For measurements and demonstrations; a small network learns it. Nothing is kept.
#pragma once

#include "data/sources/source.hpp"

namespace troupe::data {

struct SyntheticOptions {
  RawShape shape{};
  std::int32_t classes = 0;
  std::int64_t samples = 0;
  std::uint64_t seed = 1;
  bool train = true;  // the splits share patterns and differ in noise
};

class SyntheticImages final : public SampleSource {
 public:
  explicit SyntheticImages(const SyntheticOptions& options) : options_(options) {}

  [[nodiscard]] std::int64_t size() const noexcept override { return options_.samples; }
  [[nodiscard]] std::int32_t classes() const noexcept override { return options_.classes; }
  [[nodiscard]] std::optional<RawShape> raw_shape() const noexcept override { return options_.shape; }
  /// index % classes: consecutive samples contain all classes.
  [[nodiscard]] core::Result<std::int32_t> label(std::int64_t index) const override;
  [[nodiscard]] core::Result<std::int32_t> fetch(std::int64_t index, std::vector<std::uint8_t>& bytes) const override;
  [[nodiscard]] std::string where(std::int64_t index) const override;

 private:
  SyntheticOptions options_;
};

}  // namespace troupe::data
