/// Small runs on a HostDevice whose memory the host cannot read: code that reads or writes an arena without a copy dies.
#pragma once

#include "gpu/backend.hpp"
#include "gpu/device/host_device.hpp"
#include "sim/replay/run.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::tests {

using RunOptions = std::vector<std::string>;

/// Arenas in device memory. With a seed its operations come late, in an order that follows from the seed.
[[nodiscard]] std::unique_ptr<nn::Backend> resident_backend(std::optional<std::uint64_t> schedule_seed = {});
/// The same without a seed, shared by all tests.
[[nodiscard]] nn::Backend& resident();
/// Arenas in host memory that mirrors the device's: the same arithmetic.
[[nodiscard]] nn::Backend& mirrored();

/// 2 workers, 2 shards, one epoch of 40 batches, snapshots during the run.
[[nodiscard]] RunOptions run_options_of(const std::string& strategy, const RunOptions& more = {});

/// A run on `on` whose replays, with arenas on the device and with mirrors, reach every hash of its journal, and its model.
void expect_replays(const RunOptions& options, nn::Backend& on = resident());

}  // namespace troupe::tests
