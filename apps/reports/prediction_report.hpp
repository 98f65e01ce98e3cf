/// What a model says of pictures, for people and programs. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/reports/confusion_report.hpp"
#include "core/error.hpp"
#include "nn/graph.hpp"

namespace troupe::apps {

struct RankedClass {
  std::int32_t label = 0;
  double score = 0;
  bool operator==(const RankedClass&) const = default;
};

/// The `most` classes with the greatest outputs, the greatest first, of equal ones the lower number first. Scores: probabilities (softmax)
/// for softmax_cross_entropy, else the outputs themselves.
[[nodiscard]] std::vector<RankedClass> top_classes(std::span<const float> outputs, std::size_t most, nn::Loss loss);

struct Prediction {
  std::string file;
  std::vector<RankedClass> classes;
  std::optional<core::Error> error{};  // the file could not be used
};

/// One table: the file, then its classes with scores. Files that could not be read are left out.
[[nodiscard]] std::string prediction_text(const std::vector<Prediction>& predictions, const ClassNames& names);
/// One line of JSON per file: {"file", "top": [{"class", "name", "score"}]}, or {"file", "error"}.
[[nodiscard]] std::string prediction_json(const std::vector<Prediction>& predictions, const ClassNames& names);

}  // namespace troupe::apps
