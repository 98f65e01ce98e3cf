/// Pictures in files that are named one by one. They have no labels.
#pragma once

#include <string>
#include <vector>

#include "data/sources/source.hpp"

namespace troupe::data {

class NamedFiles final : public SampleSource {
 public:
  static constexpr std::int32_t kNoLabel = 0;
  /// A file of more than `most_bytes` is refused.
  NamedFiles(std::vector<std::string> paths, std::int64_t most_bytes)
      : paths_(std::move(paths)), most_bytes_(most_bytes) {}

  [[nodiscard]] std::int64_t size() const noexcept override { return static_cast<std::int64_t>(paths_.size()); }
  [[nodiscard]] std::int32_t classes() const noexcept override { return 1; }
  [[nodiscard]] core::Result<std::int32_t> label(std::int64_t /*index*/) const override { return kNoLabel; }
  [[nodiscard]] core::Result<std::int32_t> fetch(std::int64_t index, std::vector<std::uint8_t>& bytes) const override;
  [[nodiscard]] std::string where(std::int64_t index) const override {
    return paths_.at(static_cast<std::size_t>(index));
  }

 private:
  std::vector<std::string> paths_;
  std::int64_t most_bytes_;
};

}  // namespace troupe::data
