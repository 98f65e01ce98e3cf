/// The directory of a run, found without following symbolic links, so that nothing else is taken for it. Thread rule: pure but for the file system.
#pragma once

#include <string>

#include "core/error.hpp"
#include "core/file_descriptor.hpp"

namespace troupe::store {

struct RunDirectory {
  core::FileDescriptor parent, run;
  std::string name;  // of the run, in its parent
};

/// `path` is relative to `root`: `run` or `grid/run`. Errc::config, as one line: there is none, or it is not a run's.
[[nodiscard]] core::Result<RunDirectory> open_run_directory(const std::string& root, const std::string& path);

/// Whether `name` in `directory` is a regular file; a link to one is not.
[[nodiscard]] bool is_regular(int directory, const std::string& name);

/// Whether a directory has a config.toml in one of its own directories: it is a grid. Errc::io.
[[nodiscard]] core::Result<bool> contains_runs(int directory, const std::string& name);

}  // namespace troupe::store
