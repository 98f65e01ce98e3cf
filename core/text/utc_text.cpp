#include "core/text/utc_text.hpp"

#include <fmt/chrono.h>

namespace troupe::core {

std::string utc_text(std::time_t time) { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(time)); }

}  // namespace troupe::core
