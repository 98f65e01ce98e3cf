/// The exchanger actor, one per site: spawned detached, it moves bytes between members that do not share memory. A site is whoever
/// can lend memory to each other; in one process that is one, unless exchange.endpoint asks for an endpoint.
///
/// Members elsewhere are stand-ins (actors/protocol/proxy.hpp): what is lent to them comes here, travels as a call (transport/exchange/calls.hpp) to the
/// exchanger of their site, and is lent there. Reductions over several sites are ordered here and run over the endpoint, or in the
/// members' own memory, where that is made of what the endpoint maps (Prepare answers with it).
///
/// Once a second it tells the coordinator, and the workers of its site, with which sites bytes have moved (TransferNews): whoever waits
/// for an exchange with them goes on waiting.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "actors/protocol/handles.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "core/clock.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::actors {

struct ExchangerSetup {
  std::uint32_t site = 0;
  transport::EndpointOptions options{};  // completions: the actor's
  ExchangePlan exchange{};
  std::size_t most_floats = 0;  // of any vector that is lent
  bool maps_arenas = false;     // members elsewhere may sum in the memory of those here, where the endpoint can
  StartCargo start{};           // site 0: what members elsewhere begin with; none: they know it
  const core::Kernels* kernels = nullptr;
  core::Allocator* memory = nullptr;   // outlives the actor
  const core::Clock* clock = nullptr;  // outlives the actor
  /// Counts up while messages move to or from other sites: for threads that wait for something that needs them.
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
