#include "apps/output.hpp"

#include <cerrno>
#include <cstdio>

namespace troupe::apps {

core::Result<void> print(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return tl::unexpected(core::from_errno(errno, "write to", "standard output"));
  }
  return {};
}

}  // namespace troupe::apps
