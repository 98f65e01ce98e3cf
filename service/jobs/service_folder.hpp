/// The folder of a service beside its runs. Thread rule: any thread.
#pragma once

#include <string>

#include "core/error.hpp"

namespace troupe::service {

/// `<run.dir>/.service`, made if it is missing, with mode 0700: users.json and logs are the owner's. Errc::io, no_space.
[[nodiscard]] core::Result<std::string> service_folder(const std::string& run_directory);

}  // namespace troupe::service
