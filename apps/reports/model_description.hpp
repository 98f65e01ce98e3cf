/// What an exported file says of its model, as texts by name. Pure functions.
#pragma once

#include <map>
#include <string>

#include "data/preprocessing.hpp"
#include "experiment/run_spec.hpp"

namespace troupe::apps {

/// The formula and its numbers: preprocessing, image (CxHxW as stored), crop (CxHxW of the input), mean and deviation by channel, and
/// mean_image where each pixel has its own. Numbers are separated by spaces.
[[nodiscard]] std::map<std::string, std::string> describe_preprocessing(const data::Preprocess& preprocess);

/// model, dataset, and with open data classes (a JSON list; only if they have names) and the preprocessing.
[[nodiscard]] std::map<std::string, std::string> describe_model(const experiment::RunSpec& spec);

}  // namespace troupe::apps
