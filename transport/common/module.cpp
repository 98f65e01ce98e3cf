#include "transport/common/module.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

/// Sets the variables that the libraries read while they load.
void prepare_environment() {
  ::setenv("UCX_HANDLE_ERRORS", "none", 1);  // the program handles signals
  ::setenv("UCX_LOG_LEVEL", "fatal", 0);     // a lost peer is an error value, not a line on standard error
  ::setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 0);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  ::setenv("UCX_MEM_EVENTS", "n", 1);  // its hooks of malloc and mmap disturb the sanitizer
#endif
}

}  // namespace

std::optional<std::filesystem::path> find_module(std::string_view kind) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return std::nullopt;
  const auto file = fmt::format("troupe_{}.so", kind);
  for (const auto& folder : {program.parent_path() / "lib", program})
    if (std::filesystem::exists(folder / file, error)) return folder / file;
  return std::nullopt;
}

core::Result<void*> open_module(const std::string& kind, Symbols symbols) {
  const auto path = find_module(kind);
  if (!path)
    return core::fail(core::Errc::config, fmt::format("'{}': its module troupe_{}.so is not there", kind, kind));
  prepare_environment();
  void* module = ::dlopen(path->c_str(), RTLD_NOW | (symbols == Symbols::global ? RTLD_GLOBAL : RTLD_LOCAL));
  if (!module)
    return core::fail(core::Errc::config,
                      fmt::format("'{}' cannot be loaded, install its library: {}", kind, ::dlerror()));
  return module;
}

void* symbol_of(void* module, const char* name) { return ::dlsym(module, name); }

core::Error of_another_build(const std::string& kind) {
  return {core::Errc::config, fmt::format("'{}': troupe_{}.so is of another build, build it again", kind, kind)};
}

}  // namespace troupe::transport
