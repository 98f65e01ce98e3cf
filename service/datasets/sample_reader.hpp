/// Sample pictures of data sets. A page asks for many at once, and opening a data set may read all of its files: those that were asked for
/// last stay open for some seconds. Thread rule: one thread at a time, that of Where::files.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "service/datasets/dataset_registry.hpp"

namespace troupe::service {

class SampleReader {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// A data set that is not asked for any more is closed: its samples may take much memory.
  static constexpr std::chrono::seconds kKept{10};
  static constexpr std::size_t kMostOpen = 2;

  /// The sample `index` of the training split as a PNG, and nothing when there is none. Files that change while the data set is open may
  /// not be noticed. Errors as inspect().
  [[nodiscard]] core::Result<std::optional<std::string>> png(const DatasetEntry& entry, std::int64_t index, Time now);
  /// Closes what was not asked for since kKept. Returns when it wants to be called again; nothing: all are closed.
  [[nodiscard]] std::optional<std::chrono::milliseconds> close_idle(Time now);

 private:
  struct Open {
    DatasetEntry entry;
    std::int64_t limit = 0;  // samples it was opened with: it may have more
    std::shared_ptr<const data::Dataset> train;
    Time used{};
  };
  /// One that has the sample, or all there are.
  [[nodiscard]] core::Result<std::shared_ptr<const data::Dataset>> opened(const DatasetEntry& entry, std::int64_t index,
                                                                          Time now);
  std::vector<Open> open_;  // the last used one at the end
};

}  // namespace troupe::service
