/// Endpoints by name: what each can do, and how it is made. The only place that knows the names of endpoints: the values of
/// `exchange.endpoint`, the checks of a configuration, `auto`, `troupe doctor` and the loading of modules follow from these rows.
/// Thread rule: the rows are constant; a registry is built once, then read only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/open_files.hpp"
#include "transport/endpoint.hpp"
#include "transport/endpoint_options.hpp"
#include "transport/fabric/fabric.hpp"

namespace troupe::transport {

/// How far apart the members that an endpoint connects may be.
enum class Reach : std::uint8_t { process, host, hosts };

/// The runs for which exchange.endpoint = "auto" takes an endpoint. A job: processes that one launcher (mpirun, srun) started together.
enum class AutomaticFor : std::uint8_t { no_run, one_host, nodes_on_hosts, job_on_hosts };

/// The library of an endpoint that is loaded at run time, from the module troupe_NAME.so.
struct EndpointLibrary {
  std::string_view title{};     // "MPI", for people; empty: the endpoint needs no module
  std::string_view packages{};  // Debian's, with which the module can be built
  bool global_symbols = false;  // the library's own plug-ins look up its symbols
};

/// The descriptors of an endpoint while it connects, as measured on Linux without devices. Zero: unknown.
struct EndpointDescriptors {
  unsigned own = 0;
  unsigned per_peer = 0;
};

/// One row of the registry. A made endpoint's capabilities() say the same of it (tests/transport/endpoint_messages_test.cpp).
struct EndpointInfo {
  std::string_view name;  // the value of exchange.endpoint; addresses begin with it
  Reach reach = Reach::hosts;
  bool maps_memory = false;  // members can map each other's memory: Capabilities::maps_peer_memory
  bool listens = false;      // takes the address to listen at and the run's certificates, EndpointOptions::tcp
  bool needs_job = false;    // its members are the processes of a job
  bool sums_itself = false;  // has a NativeReduction: exchange.algorithm = "ar"
  AutomaticFor automatic_for = AutomaticFor::no_run;
  EndpointLibrary library{};
  EndpointDescriptors descriptors{};
  std::string_view why_no_device{};  // why a device's memory is staged; empty: it is not, or the library says so
  /// Null where the endpoint is in a module.
  core::Result<std::unique_ptr<Endpoint>> (*make)(const EndpointOptions& options) = nullptr;
};

/// The rows, in the order in which help lists them.
[[nodiscard]] std::span<const EndpointInfo> endpoint_infos();
/// Null if no endpoint has this name.
[[nodiscard]] const EndpointInfo* find_endpoint(std::string_view name);
/// As above; an unknown name is a bug: std::out_of_range.
[[nodiscard]] const EndpointInfo& endpoint_info(std::string_view name);
/// The open files that a process with `endpoints_here` of a run's `endpoints` needs: each connects to all others.
[[nodiscard]] std::uint64_t open_files_needed(const EndpointInfo& info, std::uint64_t endpoints_here,
                                              std::uint64_t endpoints);
/// Errc::config: `limit`, of this process, is below that.
[[nodiscard]] core::Result<void> check_open_files(const EndpointInfo& info, std::uint64_t endpoints_here,
                                                  std::uint64_t endpoints,
                                                  std::uint64_t limit = core::open_files_limit());
/// The endpoint that exchange.endpoint = "auto" becomes. `in_job`: the processes are those of a job.
[[nodiscard]] const EndpointInfo& automatic_endpoint(bool one_host, bool in_job);

/// The endpoints that this build can make.
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
  /// Why the endpoint `name` cannot be made; empty if it can. An unknown name is a bug: std::out_of_range.
  [[nodiscard]] const std::string& absence(std::string_view name) const;

  /// Errc::config when `name` is unknown or not in this build: the message lists the available names. Otherwise the errors of the
  /// endpoint's factory. Missing or zero options are bugs: std::invalid_argument.
  [[nodiscard]] core::Result<std::unique_ptr<Endpoint>> make(std::string_view name,
                                                             const EndpointOptions& options) const;

 private:
  void put(Entry entry);
  [[nodiscard]] std::string available() const;
  std::vector<Entry> entries_;
};

/// Whether messages of the endpoint may be in the memory of a CUDA device, on this machine; where not they are staged. Loads the endpoint's module.
/// `ucx_transports`: as in EndpointOptions.
[[nodiscard]] DeviceSupport device_support(const EndpointInfo& info, const std::string& ucx_transports = {});

/// EndpointOptions::ucx_transports between hosts: what UCX_TLS says, if it is set, else tcp. Sockets read the host's memory, so with tcp alone a
/// device's is staged: UCX would copy it too.
[[nodiscard]] std::string ucx_transports_between_hosts();

/// Adds an endpoint that a module implements. Without the module it is absent, and the reason names the packages to install.
void add_module(EndpointRegistry& registry, const EndpointInfo& info);

/// All rows, as this build has them.
[[nodiscard]] EndpointRegistry built_in_endpoints();
/// built_in_endpoints().make(name, options).
[[nodiscard]] core::Result<std::unique_ptr<Endpoint>> make_endpoint(std::string_view name,
                                                                    const EndpointOptions& options);

}  // namespace troupe::transport
