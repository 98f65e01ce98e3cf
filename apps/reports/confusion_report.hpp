/// A confusion matrix for people and programs. Pure functions. Of many classes the worst ones are shown.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "experiment/confusion_matrix.hpp"
#include "experiment/plot/figure.hpp"

namespace troupe::apps {

/// The names of classes; a class without one has its number.
using ClassNames = std::vector<std::string>;
[[nodiscard]] std::string class_name(const ClassNames& names, std::int32_t label);

/// A table of the classes, and the matrix if it is not too wide: rows are true classes, columns predictions.
[[nodiscard]] std::string confusion_text(const experiment::ConfusionMatrix& matrix, const ClassNames& names);

/// {"classes": [{"class", "name", "samples", "accuracy"}], "confusion": [[label, prediction, samples], …]}: all classes, counts above 0.
[[nodiscard]] nlohmann::ordered_json confusion_json(const experiment::ConfusionMatrix& matrix, const ClassNames& names);

/// A heat map of the shares of each true class, and the accuracies of classes.
[[nodiscard]] std::vector<plot::Figure> confusion_figures(const experiment::ConfusionMatrix& matrix,
                                                          const ClassNames& names, const std::string& title);

}  // namespace troupe::apps
