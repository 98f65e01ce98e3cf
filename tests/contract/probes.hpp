/// The probes: strategies that train nothing and check the ports. Every world that executes strategies can run them.
///
///   probe_exchanges   exchanges of every kind and size, several at a time, waiting or not; steps on demand, or the same steps for all
///                     with some passed over (strategy.in_step)
///   probe_sums        collectives: by bucket, whole, in changing groups, from a root, across the next step; several at once
///   probe_peer_messages    more of them than there is credit for, read late
#pragma once

namespace troupe::contract {

/// Adds the probes to the registry. REQUIRES: called once, first in main().
void register_probes();

}  // namespace troupe::contract
