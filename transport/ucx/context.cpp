#include "transport/ucx/context.hpp"

#include <cstdint>
#include <cstdlib>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

/// What UCX was told to take, in words.
std::string named(const std::string& transports) {
  if (!transports.empty()) return fmt::format("the transports '{}'", transports);
  const char* asked = std::getenv("UCX_TLS");
  return asked != nullptr ? fmt::format("UCX_TLS = '{}'", asked) : std::string("its default transports");
}

}  // namespace

core::Result<UcxContext> make_ucx_context(const std::string& transports) {
  ucp_config_t* config = nullptr;
  if (const auto s = ucp_config_read(nullptr, nullptr, &config); s != UCS_OK)
    return core::fail(core::Errc::io, fmt::format("UCX cannot read its configuration: {}", ucs_status_string(s)));
  // Bulk always by rendezvous: an eager message that breaks off half-way would never complete its receive.
  ucs_status_t status = ucp_config_modify(config, "RNDV_THRESH", "0");
  if (status == UCS_OK) status = ucp_config_modify(config, "KEEPALIVE_INTERVAL", "1s");
  if (status == UCS_OK && !transports.empty()) status = ucp_config_modify(config, "TLS", transports.c_str());
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
  UcxContext context;
  if (status == UCS_OK) status = ucp_init(&params, config, &context.handle);
  ucp_config_release(config);
  if (status != UCS_OK)
    return core::fail(
        core::Errc::config,
        fmt::format("UCX cannot start with {}: {}; set UCX_TLS to transports that `ucx_info -d` lists, or "
                    "unset it",
                    named(transports), ucs_status_string(status)));
  ucp_context_attr_t found{};
  found.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  context.takes_device = ucp_context_query(context.handle, &found) == UCS_OK &&
                         (found.memory_types & (std::uint64_t{1} << UCS_MEMORY_TYPE_CUDA)) != 0;
  return context;
}

DeviceSupport ucx_device_support(const std::string& transports) {
  const auto context = make_ucx_context(transports);
  if (!context) return {.takes = false, .why_not = context.error().message};
  ucp_cleanup(context->handle);
  if (context->takes_device) return {.takes = true, .why_not = {}};
  if (!transports.empty() || std::getenv("UCX_TLS") != nullptr)
    return {.takes = false,
            .why_not = fmt::format("UCX has no CUDA transport in {}: UCX_TLS can name others", named(transports))};
  return {.takes = false,
          .why_not =
              "UCX has no CUDA transport here: it was built without CUDA, or its module libuct_cuda.so finds no "
              "driver"};
}

}  // namespace troupe::transport
