/// Defects that are known and not mended yet, so that the others are found: the one place. Both lists must be empty. Pure.
#pragma once

#include <string>
#include <vector>

#include "tests/histories/history.hpp"

namespace troupe::histories {

/// What the generator leaves out.
struct Mask {
  std::string why;
  bool (*hides)(const History& history);
};
[[nodiscard]] const std::vector<Mask>& masks();

/// What the oracle does not complain of: every line with this in it.
struct Pardon {
  std::string why;
  std::string part;
};
[[nodiscard]] const std::vector<Pardon>& pardons();

}  // namespace troupe::histories
