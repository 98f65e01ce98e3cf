#include "core/error.hpp"

#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include "core/open_files.hpp"

namespace troupe::core {

int exit_code(Errc code) noexcept {
  switch (code) {
    case Errc::usage: return 2;
    case Errc::config: return 78;
    case Errc::data:
    case Errc::corrupt: return 65;
    case Errc::io:
    case Errc::no_space: return 74;
    case Errc::timeout:
    case Errc::peer_lost: return 75;
    case Errc::interrupted: return 130;
    case Errc::out_of_memory: return 71;
    case Errc::program: return 69;
    case Errc::diverged:
    case Errc::internal: return 70;
  }
  return 70;
}

std::string_view name(Errc code) noexcept {
  switch (code) {
    case Errc::usage: return "usage";
    case Errc::config: return "config";
    case Errc::data: return "data";
    case Errc::corrupt: return "corrupt";
    case Errc::io: return "io";
    case Errc::no_space: return "no_space";
    case Errc::timeout: return "timeout";
    case Errc::peer_lost: return "peer_lost";
    case Errc::diverged: return "diverged";
    case Errc::interrupted: return "interrupted";
    case Errc::internal: return "internal";
    case Errc::out_of_memory: return "out_of_memory";
    case Errc::program: return "program";
  }
  return "internal";
}

Error from_errno(int error_number, std::string_view doing, std::string_view path) {
  const bool full = error_number == ENOSPC || error_number == EDQUOT;
  const bool memory = error_number == ENOMEM;
  const bool descriptors = error_number == EMFILE;
  const bool large = error_number == EFBIG;
  // std::strerror is not thread-safe; the category's message is.
  const std::string_view advice = full          ? " (free some space and try again)"
                                  : memory      ? " (free some memory and try again)"
                                  : descriptors ? kOpenFilesAdvice
                                  : large       ? " (raise this process's limit on the size of files: `ulimit -f`)"
                                                : "";
  return {full     ? Errc::no_space
          : memory ? Errc::out_of_memory
                   : Errc::io,
          fmt::format("cannot {} {}: {}{}", doing, path, std::generic_category().message(error_number), advice)};
}

}  // namespace troupe::core
