#include "apps/output.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <fmt/format.h>

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

std::string note_text(const experiment::Note& note) {
  return fmt::format("{}{}\n", note.level == experiment::Note::Level::warning ? "warning: " : "", note.text);
}

void print_note(const experiment::Note& note) { tell(note_text(note)); }

std::optional<std::size_t> terminal_columns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

std::size_t output_columns() {
  constexpr std::size_t kFewest = 40;
  return std::max(terminal_columns().value_or(core::kUsualColumns), kFewest);
}

}  // namespace troupe::apps
