#include "service/api/openapi.hpp"

#include "service/assets/embedded.hpp"

namespace troupe::service {

std::string_view openapi_text() noexcept { return embedded_openapi(); }

}  // namespace troupe::service
