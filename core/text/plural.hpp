/// Numbers with nouns, for messages: "1 worker", "3 workers". Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::core {

/// "worker" for 1; else "workers", or `plural` where it is given ("hashes").
[[nodiscard]] std::string noun(std::uint64_t number, std::string_view singular, std::string_view plural = {});
/// The number and its noun.
[[nodiscard]] std::string counted(std::uint64_t number, std::string_view singular, std::string_view plural = {});

}  // namespace troupe::core
