#include "gpu/cuda/libraries/source_text.hpp"

#include <fmt/format.h>

namespace troupe::gpu {
namespace {

constexpr std::size_t kLongest = 300;

}  // namespace

std::string source_text(const std::source_location& where) {
  std::string_view file = where.file_name();
  if (const auto at = file.rfind("gpu/cuda/"); at != std::string_view::npos) file.remove_prefix(at);
  return fmt::format("{}:{}", file, where.line());
}

std::string one_line(std::string_view text) {
  std::string line;
  bool gap = false;
  for (const char c : text) {
    if (c == '\0') break;
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      gap = !line.empty();
      continue;
    }
    if (gap) line += ' ';
    gap = false;
    line += c;
    if (line.size() >= kLongest) break;
  }
  return line.empty() ? line : ": " + line;
}

}  // namespace troupe::gpu
