/// Endpoints by name: the values of `exchange.endpoint`, and the list in `troupe doctor`. Thread rule: built once, then read only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "transport/endpoint.hpp"
#include "transport/endpoint_options.hpp"

namespace troupe::transport {

class EndpointRegistry {
 public:
  using Make = MakeEndpoint;
  struct Entry {
    std::string name;
    Make make;           // empty: not in this build
    std::string absent;  // why it is absent, and what to do
  };

  /// Replaces an entry of the same name: a loaded module replaces "not in this build".
  void add(std::string name, Make make);
  void add_absent(std::string name, std::string why);
  [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }

  /// Errc::config when `name` is unknown or not in this build: the message lists the available names. Otherwise the errors of the
  /// endpoint's factory. Missing or zero options are bugs: std::invalid_argument.
  [[nodiscard]] core::Result<std::unique_ptr<Endpoint>> make(std::string_view name,
                                                             const EndpointOptions& options) const;

 private:
  void put(Entry entry);
  [[nodiscard]] std::string available() const;
  std::vector<Entry> entries_;
};

/// Adds an endpoint that a module implements. Without the module it is absent, and the reason names the `packages` to install.
void add_module(EndpointRegistry& registry, const std::string& kind, std::string_view packages);

/// inproc, shm, tcp, ucx and mpi, as this build has them.
[[nodiscard]] EndpointRegistry built_in_endpoints();
/// built_in_endpoints().make(name, options).
[[nodiscard]] core::Result<std::unique_ptr<Endpoint>> make_endpoint(std::string_view name,
                                                                    const EndpointOptions& options);

}  // namespace troupe::transport
