/// Endpoints by name: what `exchange.endpoint` may say, and what `troupe doctor` lists.
/// Thread rule: a registry is built once and then read.
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
    std::string absent;  // why, and what to do about it
  };

  /// A name that is there already is replaced: a loaded module takes the place of "not in this build".
  void add(std::string name, Make make);
  void add_absent(std::string name, std::string why);
  [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }

  /// Errc::config when `name` is unknown or not in this build: the message names those that are. Otherwise what the
  /// endpoint's own factory says. Missing or zero options are bugs: std::invalid_argument.
  [[nodiscard]] core::Result<std::unique_ptr<Endpoint>> make(std::string_view name,
                                                             const EndpointOptions& options) const;

 private:
  void put(Entry entry);
  [[nodiscard]] std::string available() const;
  std::vector<Entry> entries_;
};

/// Adds an endpoint that a module holds: present when the module is, else absent with `packages` to install.
void add_module(EndpointRegistry& registry, const std::string& kind, std::string_view packages);

/// inproc, shm, tcp, ucx and mpi, as far as this build has them.
[[nodiscard]] EndpointRegistry built_in_endpoints();
/// built_in_endpoints().make(name, options).
[[nodiscard]] core::Result<std::unique_ptr<Endpoint>> make_endpoint(std::string_view name,
                                                                    const EndpointOptions& options);

}  // namespace troupe::transport
