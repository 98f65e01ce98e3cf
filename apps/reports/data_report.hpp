/// What `troupe data inspect` says of a data set, for people and programs. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "data/dataset.hpp"

namespace troupe::apps {

/// One split: its samples by class.
struct SplitFacts {
  std::string name;  // train, test, validation
  std::int64_t samples = 0;
  std::vector<std::int64_t> by_class;  // [classes]
  std::int64_t unreadable = 0;         // of those that were decoded
  std::vector<std::string> errors;     // of the first unreadable ones
};

struct DataFacts {
  std::string name;
  data::ImageShape shape;
  std::vector<std::string> class_names;  // [classes]; numbers where the data set has no names
  bool decoded = false;                  // every sample was
  std::vector<SplitFacts> splits;
};

/// Samples by class: all of up to 40 classes, of more the ones with fewest and most samples.
[[nodiscard]] std::string data_text(const DataFacts& facts);
[[nodiscard]] nlohmann::ordered_json data_json(const DataFacts& facts);

}  // namespace troupe::apps
