#include "strategies/search/option_space.hpp"

namespace troupe::strategies {

OptionSpace::Choice values(const std::string& key, const std::vector<std::string>& all) {
  OptionSpace::Choice choice;
  for (const auto& value : all) choice.push_back({.set = {{key, value}}});
  return choice;
}

OptionSpace::Choice range(const std::string& key, std::uint64_t low, std::uint64_t high) {
  OptionSpace::Choice choice;
  for (auto value = low; value <= high; ++value) choice.push_back({.set = {{key, std::to_string(value)}}});
  return choice;
}

}  // namespace troupe::strategies
