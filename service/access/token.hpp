/// Tokens and their hashes. A token has 256 random bits, so its plain SHA-256 is no help to find it. Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace troupe::service {

/// 43 letters, digits, "-" and "_". Throws std::runtime_error if the system has no random numbers.
[[nodiscard]] std::string new_token();

[[nodiscard]] std::string sha256_hex(std::string_view text);

/// Takes the same time wherever the two differ.
[[nodiscard]] bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept;

}  // namespace troupe::service
