/// Text forms of events, for messages that name the first divergence. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "experiment/directory/run_records.hpp"
#include "strategies/host/events.hpp"

namespace troupe::replay {

[[nodiscard]] std::string describe(const strategies::WorkerEvent& event);
[[nodiscard]] std::string describe(const strategies::ServerEvent& event);
[[nodiscard]] std::string describe(const experiment::SnapshotRecord& snapshot);

/// "worker1", "server0": as `--until` and the service name members.
[[nodiscard]] std::string member_name(bool server, std::uint32_t member);

/// "params", "center", "state[1]", …
[[nodiscard]] std::string describe(strategies::Slot slot);

}  // namespace troupe::replay
