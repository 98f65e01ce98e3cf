/// TOML values as text on one line, in one spelling: what --set takes, what is compared, what people read. Pure functions.
#pragma once

#include <string>

#include <tl/expected.hpp>
#include <toml++/toml.h>

namespace troupe::grid {

/// Equal values have equal text; 1 and 1.0 differ. Fails, saying what a value must not be, for dates, times, NaN and infinity.
[[nodiscard]] tl::expected<std::string, std::string> toml_text(const toml::node& node);

/// The same for people: text without its quotes.
[[nodiscard]] std::string plain_text(const std::string& toml_value);

}  // namespace troupe::grid
