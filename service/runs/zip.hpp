/// A directory of a run as a zip archive. Thread rule: no shared state.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "core/error.hpp"
#include "core/file_descriptor.hpp"

namespace troupe::service {

struct ZipChoice {
  bool checkpoints = false;  // also what is in checkpoints/ and best.safetensors
};

/// Writes the regular files of `directory` (an open one) and of its folders into a file without a name, under `name`/. Links, hidden files
/// and temporaries are left out. Files may grow meanwhile: each is taken as long as it was. Errc::io, no_space; interrupted after a request
/// of `stop`.
[[nodiscard]] core::Result<core::FileDescriptor> zip_of_directory(int directory, const std::string& name,
                                                                  const ZipChoice& choice, const std::stop_token& stop);

}  // namespace troupe::service
