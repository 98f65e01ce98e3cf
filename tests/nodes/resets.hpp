/// Resets connections of the data plane while they are in use. Needs root, iproute2 and a kernel with
/// CONFIG_INET_DIAG_DESTROY.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::nodes {

/// Resets all connections of `process` except those to or from the ports in `control`. Returns their number. `within`: words before
/// each command, for a process in a network namespace of its own.
[[nodiscard]] std::size_t reset_data(pid_t process, const std::vector<std::uint16_t>& control,
                                     const std::vector<std::string>& within = {});

}  // namespace troupe::nodes
