/// Libraries that are loaded when they are used: the program starts where UCX, MPI or a GPU driver is not installed. A module
/// is a shared object named troupe_<kind>.so, in ../lib beside the program's folder or in that folder itself. Once loaded it stays.
/// Thread rule: find_module() is thread-safe; the others are called by one thread at a time.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace troupe::transport {

/// Where the module of this kind is; nothing when it was not built.
[[nodiscard]] std::optional<std::filesystem::path> find_module(std::string_view kind);

/// Loads the module and returns its handle. Errc::config when it cannot be loaded, with the loader's reason. Loading sets environment
/// variables of the library: do it before threads that read the environment start.
[[nodiscard]] core::Result<void*> open_module(const std::string& kind);

/// What the module exports under this name; null when it exports no such thing.
[[nodiscard]] void* symbol_of(void* module, const char* name);
template <class Function>
[[nodiscard]] Function* function_of(void* module, const char* name) {
  return reinterpret_cast<Function*>(symbol_of(module, name));
}

/// The error for a module whose version is not this program's.
[[nodiscard]] core::Error of_another_build(const std::string& kind);

}  // namespace troupe::transport
