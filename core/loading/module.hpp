/// Loads libraries at run time, so that the program starts where UCX, MPI, HDF5 or a GPU driver is not installed. A module is a shared
/// object named troupe_<kind>.so, in ../lib or ../lib/troupe beside the program's folder, or in that folder itself. A loaded module stays
/// loaded. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace troupe::core {

/// The path of this kind's module; nothing when it was not built.
[[nodiscard]] std::optional<std::filesystem::path> find_module(std::string_view kind);

/// Who sees the symbols of a module's libraries: the module only, or all that is loaded later, as a library's own plug-ins.
enum class Symbols : std::uint8_t { local, global };

/// Loads the module and returns its handle. Errc::config with the loader's reason when it cannot be loaded.
[[nodiscard]] Result<void*> open_module(const std::string& kind, Symbols symbols = Symbols::local);

/// The module's exported symbol of this name; null when there is none.
[[nodiscard]] void* symbol_of(void* module, const char* name);
template <class Function>
[[nodiscard]] Function* function_of(void* module, const char* name) {
  return reinterpret_cast<Function*>(symbol_of(module, name));
}

/// The error for a module whose version is not this program's.
[[nodiscard]] Error of_another_build(const std::string& kind);

}  // namespace troupe::core
