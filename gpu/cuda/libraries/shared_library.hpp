/// A library of CUDA's that is loaded when it is needed: the module loads, and can say what is missing, where it is not installed.
/// Thread rule: plain values; open() may be called by any thread.
#pragma once

#include <initializer_list>
#include <string>

#include "core/error.hpp"

namespace troupe::gpu {

class SharedLibrary {
 public:
  /// Opens the library by name, as LD_LIBRARY_PATH and the loader's cache have it, else in the folders where CUDA is usually installed. It
  /// stays loaded. Errc::config with the loader's reason.
  [[nodiscard]] static core::Result<SharedLibrary> open(const std::string& name);

  /// Null when the library has no such function.
  [[nodiscard]] void* symbol(const char* name) const noexcept;
  /// Fills `function` and returns true, or names the missing function in `missing`.
  template <class Function>
  void find(const char* name, Function*& function, std::string& missing) const {
    function = reinterpret_cast<Function*>(symbol(name));
    if (!function) missing += (missing.empty() ? "" : ", ") + std::string(name);
  }

 private:
  explicit SharedLibrary(void* handle) noexcept : handle_(handle) {}
  void* handle_ = nullptr;
};

}  // namespace troupe::gpu
