#include "gpu/cuda/libraries/shared_library.hpp"

#include <dlfcn.h>

#include <fmt/format.h>

namespace troupe::gpu {

core::Result<SharedLibrary> SharedLibrary::open(const std::string& name) {
  std::string reason;
  for (const char* folder : {"", "/usr/local/cuda/lib64/", "/opt/cuda/lib64/", "/usr/lib/x86_64-linux-gnu/",
                             "/usr/lib/aarch64-linux-gnu/"}) {
    if (void* handle = ::dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return SharedLibrary(handle);
    if (reason.empty()) reason = ::dlerror();  // of the search by name: later ones only say that a folder lacks it
  }
  return core::fail(
      core::Errc::config,
      fmt::format("{} cannot be loaded: {}; install it, or name its folder in LD_LIBRARY_PATH", name, reason));
}

void* SharedLibrary::symbol(const char* name) const noexcept { return ::dlsym(handle_, name); }

}  // namespace troupe::gpu
