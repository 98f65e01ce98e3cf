/// Whether a request was meant for this service and comes from its own pages: against pages of other sites that a user has open, and names
/// that an attacker lets point here. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troupe::service {

/// The host in lower case of "example.org:8080", "[::1]:8080", "127.0.0.1"; empty: it is no such text.
[[nodiscard]] std::string host_of(std::string_view authority);

/// Names by which a service that listens on `address` may be called: the address, on loopback also "localhost" and both loopback addresses,
/// and `names`.
[[nodiscard]] std::vector<std::string> hosts_of_service(const std::string& address,
                                                        const std::vector<std::string>& names);

/// `host`: the Host header. Any port: it may come through a tunnel.
[[nodiscard]] bool is_own_host(std::string_view host, const std::vector<std::string>& own);

/// `origin`: the Origin header, that of a page with the same authority as `host`. A page of another port is foreign.
[[nodiscard]] bool is_same_origin(std::string_view origin, std::string_view host);

}  // namespace troupe::service
