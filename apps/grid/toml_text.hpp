/// TOML values as text on one line, in canonical form: for --set, comparison and output. Pure functions.
#pragma once

#include <string>

#include <tl/expected.hpp>
#include <toml++/toml.h>

namespace troupe::grid {

/// Equal values have equal text; 1 and 1.0 differ. Fails with a reason for dates, times, NaN and infinity.
[[nodiscard]] tl::expected<std::string, std::string> toml_text(const toml::node& node);

/// For output: strings without quotes.
[[nodiscard]] std::string plain_text(const std::string& toml_value);

}  // namespace troupe::grid
