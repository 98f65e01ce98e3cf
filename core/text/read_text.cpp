#include "core/text/read_text.hpp"

#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>

#include <fmt/format.h>

namespace troupe::core {

Result<std::string> read_text(const std::string& kind, const std::string& path) {
  errno = 0;  // opening sets it, and reading after that
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  if (stream) {
    errno = 0;
    text << stream.rdbuf();
  }
  // A directory can be opened but not read. An empty file fails the insertion too, without an errno.
  if (!stream || stream.bad() || (text.fail() && errno != 0)) {
    const int error = errno != 0 ? errno : ENOENT;
    // A wrong path is the user's; that a file may not be read is none of what stands in a configuration.
    const auto code = error == EACCES || error == EPERM ? Errc::io : Errc::config;
    return fail(code, fmt::format("cannot read {} {}: {}", kind, path, std::generic_category().message(error)));
  }
  return text.str();
}

}  // namespace troupe::core
