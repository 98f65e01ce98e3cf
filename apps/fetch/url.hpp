/// Addresses of files on the web, and the proxy on the way there. Pure; values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace troupe::fetch {

struct Url {
  bool tls = false;  // https
  std::string host;  // a name or an IP address, without brackets
  std::uint16_t port = 0;
  std::string target = "/";  // path and query, as sent
  bool operator==(const Url&) const = default;
};

/// "https://host/path"; the port only where it is not the usual one.
[[nodiscard]] std::string to_text(const Url& url);
/// The value of a request's field Host: with a port where it is not the usual one.
[[nodiscard]] std::string authority(const Url& url);

/// http:// and https:// without a user name; a fragment is dropped. Errc::usage for any other text.
[[nodiscard]] core::Result<Url> parse_url(std::string_view text);

/// The file `name` in the folder `base`, which may end without a slash.
[[nodiscard]] Url file_in(Url base, std::string_view name);

/// Where the field Location of an answer from `base` leads (RFC 3986, section 5.2). Errc::data: it is no address of the web.
[[nodiscard]] core::Result<Url> redirected(const Url& base, std::string_view location);

using Variable = std::function<const char*(const char*)>;

/// The proxy that the environment names for `url`: https_proxy or http_proxy, all_proxy, in either case (http_proxy in small letters only),
/// unless no_proxy lists the host or a domain of it. Errc::config: it is no http:// address.
[[nodiscard]] core::Result<std::optional<Url>> proxy_for(const Url& url, const Variable& variable);

}  // namespace troupe::fetch
