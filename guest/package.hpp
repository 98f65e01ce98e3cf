/// Where the Python package of guests lies, for programs that have not installed it. Pure but for looking at the file system.
#pragma once

#include "guest/process.hpp"

namespace troupe::guest {

/// `variables`, with PYTHONPATH that also finds the package beside this executable (in the source tree, in a bundle), after the user's own
/// entries; unchanged where there is none.
[[nodiscard]] GuestProcess::Variables with_package(GuestProcess::Variables variables);

}  // namespace troupe::guest
