/// The backend of runs whose replicas are computed on devices that their configuration names: one GPU, several, or CPU and GPU. Arenas are in
/// the memory of each replica's device. Members of one process exchange them there if all compute on one device, or on devices of one kind that
/// reach each other's memory (peer access); otherwise in copies in host memory, and servers and sums are the host's.
///
/// CompileOptions::device_name chooses the device (nn/device_names.hpp); "cuda" is the host's GPU of number local_rank modulo their count. A
/// device is opened when a replica is compiled for it: a process needs those of its own members only. Replicas of different kinds exchange
/// arenas if both are compiled with canonical_arenas.
///
/// Plans: a replica's is that of its device's backend; compile() takes the part of its device's model (nn::part_for). Where a given plan has
/// none, choices are made by rule, so that a replay, whose plan has none either, makes the same ones.
///
/// Thread-safe. Outlives its replicas.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gpu/device/load.hpp"
#include "nn/backend.hpp"
#include "nn/device_names.hpp"

namespace troupe::apps {

/// Whether each of the devices of these numbers reaches the memory of each other one.
[[nodiscard]] bool reach_each_other(const std::vector<gpu::FoundDevice>& devices, const std::vector<int>& ordinals);

/// The number of the device that `device` means for the worker of this number on its host, which has so many `devices` of the kind.
[[nodiscard]] int ordinal_of(const nn::DeviceName& device, int local_rank, int devices);

/// `devices`: all that replicas may name, at least one; the first is that of replicas that name none. The backend tells the capabilities of the
/// first one that this machine has. `workers`: of the run. Errc::config when this build or this machine has none of them, with
/// the reason: no module, no driver, no device, a missing library.
[[nodiscard]] core::Result<std::unique_ptr<nn::Backend>> make_devices_backend(const std::vector<std::string>& devices,
                                                                              std::size_t workers);

}  // namespace troupe::apps
