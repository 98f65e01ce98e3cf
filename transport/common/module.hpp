/// Modules of libraries that carry vectors (core/module.hpp). Thread rule: find_module() is thread-safe; only one thread at a time calls
/// open_module().
#pragma once

#include <string>

#include "core/error.hpp"
#include "core/module.hpp"

namespace troupe::transport {

using core::find_module;
using core::function_of;
using core::of_another_build;
using core::Symbols;

/// core::load_module(), after it has set environment variables of the libraries: call it before threads that read the environment start.
/// Errc::config as there.
[[nodiscard]] core::Result<void*> open_module(const std::string& kind, Symbols symbols = Symbols::local);

}  // namespace troupe::transport
