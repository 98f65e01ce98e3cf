/// The bytes of a worker's exchanges by purpose and by the member at the other end. Plain values and pure functions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe::strategies {
enum class Transfer : std::uint8_t;
}

namespace troupe::experiment {

enum class Purpose : std::uint8_t {
  push,        ///< to a server
  pull,        ///< from a server
  exchange,    ///< to a server and back: strategies::Transfer::push_pull
  peer,        ///< a message to another worker
  collective,  ///< the worker's part of a reduction or broadcast: of a group, not of one other member
};
inline constexpr Purpose kLastPurpose = Purpose::collective;

[[nodiscard]] std::string_view name(Purpose purpose) noexcept;
[[nodiscard]] Purpose purpose_of(strategies::Transfer transfer) noexcept;

/// Bytes of one purpose with one member: a server's number; for `peer` the other worker's rank; for `collective` 0.
struct Traffic {
  Purpose purpose = Purpose::push;
  std::uint32_t member = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Traffic&) const = default;
};

/// Adds to the row of this purpose and member. The rows stay ascending by both: O(log rows), and O(rows) for a new one.
void count(std::vector<Traffic>& rows, const Traffic& more);
[[nodiscard]] std::uint64_t total_bytes(const std::vector<Traffic>& rows) noexcept;

}  // namespace troupe::experiment
