#include "core/text/plural.hpp"

#include <fmt/format.h>

namespace troupe::core {

std::string noun(std::uint64_t number, std::string_view singular, std::string_view plural) {
  if (number == 1) return std::string(singular);
  return plural.empty() ? fmt::format("{}s", singular) : std::string(plural);
}

std::string counted(std::uint64_t number, std::string_view singular, std::string_view plural) {
  return fmt::format("{} {}", number, noun(number, singular, plural));
}

}  // namespace troupe::core
