#include "transport/common/module.hpp"

#include <cstdlib>

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

core::Result<void*> open_module(const std::string& kind, Symbols symbols) {
  if (find_module(kind)) prepare_environment();
  return core::open_module(kind, symbols);
}

}  // namespace troupe::transport
