#include "apps/output.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "core/text/layout.hpp"

namespace troupe::apps {

core::Result<void> print(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return tl::unexpected(core::from_errno(errno, "write to", "standard output"));
  }
  return {};
}

void tell(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

std::size_t output_columns() {
  constexpr std::size_t kFewest = 40;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return core::kUsualColumns;
  return std::max<std::size_t>(size.ws_col, kFewest);
}

}  // namespace troupe::apps
