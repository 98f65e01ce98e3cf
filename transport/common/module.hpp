/// Loads the modules of endpoints and devices (core/loading/module.hpp), and sets what their libraries read while they load.
/// Thread rule: as core/loading/module.hpp.
#pragma once

#include <string>

#include "core/loading/module.hpp"

namespace troupe::transport {

using core::find_module;
using core::function_of;
using core::of_another_build;
using core::symbol_of;
using core::Symbols;

/// As core::open_module. Sets environment variables of the library: call it before threads that read the environment start.
[[nodiscard]] core::Result<void*> open_module(const std::string& kind, Symbols symbols = Symbols::local);

}  // namespace troupe::transport
