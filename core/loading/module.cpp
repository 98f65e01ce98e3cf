#include "core/loading/module.hpp"

#include <dlfcn.h>

#include <system_error>

#include <fmt/format.h>

namespace troupe::core {

std::optional<std::filesystem::path> find_module(std::string_view kind) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return std::nullopt;
  const auto file = fmt::format("troupe_{}.so", kind);
  for (const auto& folder : {program.parent_path() / "lib", program.parent_path() / "lib/troupe", program})
    if (std::filesystem::exists(folder / file, error)) return folder / file;
  return std::nullopt;
}

Result<void*> open_module(const std::string& kind, Symbols symbols) {
  const auto path = find_module(kind);
  if (!path) return fail(Errc::config, fmt::format("'{}': its module troupe_{}.so is not there", kind, kind));
  void* module = ::dlopen(path->c_str(), RTLD_NOW | (symbols == Symbols::global ? RTLD_GLOBAL : RTLD_LOCAL));
  if (!module)
    return fail(Errc::config, fmt::format("'{}' cannot be loaded, install its library: {}", kind, ::dlerror()));
  return module;
}

void* symbol_of(void* module, const char* name) { return ::dlsym(module, name); }

Error of_another_build(const std::string& kind) {
  return {Errc::config, fmt::format("'{}': troupe_{}.so is of another build, build it again", kind, kind)};
}

}  // namespace troupe::core
