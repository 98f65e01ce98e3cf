/// Spaces of tests. One thread.
#pragma once

#include "experiment/sweep/space.hpp"

namespace troupe::sweep {

inline Parameter real(std::string key, double low, double high, bool log = false) {
  return {.key = std::move(key), .kind = Kind::real, .low = low, .high = high, .log = log};
}
inline Parameter integer(std::string key, double low, double high, bool log = false) {
  return {.key = std::move(key), .kind = Kind::integer, .low = low, .high = high, .log = log};
}
inline Parameter choice(std::string key, std::vector<std::string> choices) {
  return {.key = std::move(key), .kind = Kind::choice, .choices = std::move(choices)};
}

/// A learning rate, two strategies, and a period that one of them has.
inline Space conditional_space() {
  auto tau = integer("strategy.tau", 1, 64, true);
  tau.depends_on = 1;
  tau.when = {1};
  return Space({real("train.lr", 0.001, 1, true), choice("strategy.name", {"\"bsp\"", "\"easgd\""}), tau});
}

}  // namespace troupe::sweep
