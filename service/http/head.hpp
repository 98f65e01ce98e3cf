/// The head of an answer as text. Pure functions.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "service/http/message.hpp"

namespace troupe::service {

[[nodiscard]] std::string_view reason_of(int status) noexcept;  // "Not Found"

/// Status line and headers with the empty line. `length`: of the body; nothing: it ends with the connection. Throws std::logic_error for a
/// header with a line end.
[[nodiscard]] std::string head_of(const Response& response, std::optional<std::uint64_t> length, bool keep_alive,
                                  std::time_t now);

}  // namespace troupe::service
