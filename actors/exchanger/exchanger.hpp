/// The exchanger actor, spawned detached: moves vectors between members that do not share memory. A run of several sites has one per site.
/// The members of a site lend memory to each other. A run in one process has one site, unless exchange.endpoint asks for an endpoint.
///
/// Members of other sites have proxies (actors/protocol/proxy.hpp). A vector that is lent to a proxy travels as a call
/// (transport/exchange/rpc.hpp) to the exchanger of the member's site, which lends its copy to the member. Workers order reductions over
/// sites here. These run over the endpoint, or in the workers' arenas where the endpoint, or the devices of one host, can map them (the answer to
/// Prepare has them).
///
/// Once a second it reports the sites with which bytes have moved (TransferNews) to the coordinator and the workers of its site: waits for
/// these sites are extended.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "actors/protocol/handles.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "core/clock.hpp"
#include "core/devices/device_checksum.hpp"
#include "core/devices/device_copier.hpp"
#include "core/devices/device_reduction.hpp"
#include "experiment/state/vector_memory.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::actors {

struct ExchangerSetup {
  std::uint32_t site = 0;
  transport::EndpointOptions options{};  // the actor sets `completions` and `name`
  ExchangePlan exchange{};
  std::size_t most_floats = 0;             // longest vector that is lent
  bool maps_arenas = false;                // other sites may sum in this site's arenas, if the endpoint can map them
  StartPayload start{};                    // site 0: the checkpoint for other sites; none: they need none
  const core::Kernels* kernels = nullptr;  // for `memory`
  core::Allocator* memory = nullptr;       // of the vectors of members here; outlives the actor
  std::shared_ptr<core::DeviceCopier> copier{};      // of device memory, for endpoints that cannot reach it
  std::shared_ptr<core::DeviceChecksum> checksum{};  // of device memory, for those that can; null without `copier`
  experiment::MappableMemory mappable{};  // of the device of `memory`, for arenas that sites of this host map
  std::shared_ptr<core::DeviceReduction> reduction{};  // of exchange.algorithm = "nccl"; null: there is none
  const core::Clock* clock = nullptr;                  // outlives the actor
  /// Grows while bytes move to or from other sites: threads that wait for these sites watch it.
  std::shared_ptr<std::atomic<std::uint64_t>> moves = std::make_shared<std::atomic<std::uint64_t>>(0);
};

class ExchangerBody;
struct ExchangerState {
  std::unique_ptr<ExchangerBody> body;
  static inline const char* name = "exchanger";
  ExchangerState();
  ~ExchangerState();
};

[[nodiscard]] ExchangerActor::behavior_type exchanger(ExchangerActor::stateful_pointer<ExchangerState> self,
                                                      ExchangerSetup setup);

}  // namespace troupe::actors
