/// Numbers of a run's state as text in columns. Pure functions.
#pragma once

#include <optional>
#include <string>

#include "apps/client/json_values.hpp"

namespace troupe::apps {

/// "1,234"; "-": not known.
[[nodiscard]] std::string whole_text(std::optional<double> number);
/// "9,021", "12.3", "0.52".
[[nodiscard]] std::string rate_value(std::optional<double> number);
/// "98.4 %" of 0.984.
[[nodiscard]] std::string percent_value(std::optional<double> share);
/// "12.3 s", "4.0 min", "2.1 h".
[[nodiscard]] std::string seconds_value(std::optional<double> seconds);
/// "512 B", "1.2 GB".
[[nodiscard]] std::string bytes_value(double bytes);
/// "1:23": the run's time over all sessions (`wall_s`) at a state, note or member event; of an older service, which does not send it, the
/// session's.
[[nodiscard]] std::string time_value(const StateJson& moment);
[[nodiscard]] std::string loss_value(std::optional<double> loss);

}  // namespace troupe::apps
