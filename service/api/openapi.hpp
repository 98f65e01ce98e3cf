/// The description of the interface: service/openapi.json, built in. Constant data.
#pragma once

#include <string_view>

namespace troupe::service {

/// An OpenAPI 3.1 document.
[[nodiscard]] std::string_view openapi_text() noexcept;

}  // namespace troupe::service
