/// Files that were built into the program. Constant data.
#pragma once

#include <span>
#include <string_view>

namespace troupe::service {

struct EmbeddedFile {
  std::string_view name;  // "index.html", "assets/app-1234.js"
  std::string_view bytes;
};

/// service/openapi.json
[[nodiscard]] std::string_view embedded_openapi() noexcept;

/// The dashboard, as scripts/web has built it; none: it was not built when the program was configured.
[[nodiscard]] std::span<const EmbeddedFile> embedded_dashboard() noexcept;

}  // namespace troupe::service
