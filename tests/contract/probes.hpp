/// The probes: strategies that train nothing and look at the ports. Each is one, so every world that executes strategies runs them.
///
///   probe_exchanges   exchanges of every kind and size, some at a time, waiting or not; steps on demand, or in step with some
///                     passed over (strategy.in_step)
///   probe_sums        collectives: by bucket, whole, in groups that change, from a root, over the next step; several at once
///   probe_mail        letters between workers: more than there is credit for, read late
#pragma once

namespace troupe::contract {

/// Adds them to the registry. Once, first thing in main().
void register_probes();

}  // namespace troupe::contract
