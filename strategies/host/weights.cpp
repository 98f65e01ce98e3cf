#include "strategies/host/weights.hpp"

#include <fmt/format.h>

namespace troupe::strategies {

std::string wrong_sum_of_shares(double sum, double before) {
  return fmt::format(
      "the workers' shares of the model, and those of the peer messages between them, add up to {:.17g}; before they "
      "were {:.17g}",
      sum, before);
}

}  // namespace troupe::strategies
