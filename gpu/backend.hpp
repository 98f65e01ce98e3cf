/// The GPU backend: graphs compiled for the devices of a machine. The contract of a Replica is in nn/backend.hpp; this backend adds:
///   - batches are host memory. Arenas are device memory, or host memory that mirrors it (gpu/replica.hpp);
///   - convolution weights are [outputs, kernel, kernel, channels / groups]; of a convolution of the images with padded channels. All other
///     parameters are plain (gpu/layers/);
///   - CompileOptions::threads is ignored, and Parallel::neurons refused;
///   - choices are engines of the device's libraries, by measurement (gpu/program/choices.hpp). A plan of another device or other libraries
///     may name engines that do not exist here: Errc::config;
///   - the replicas of one thread and its kernels() on the device share that thread's stream.
/// Same plan, same inputs, CompileOptions::deterministic: the same bits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpu/device/device.hpp"
#include "nn/backend.hpp"

namespace troupe::gpu {

/// What a backend of `devices` GPUs can do whose arenas are in device memory, also before one of them is opened. `batches`: Capabilities::batches.
[[nodiscard]] nn::Capabilities capabilities_on_devices(std::size_t devices, core::Allocator& batches);

/// `devices`: at least one, number i is CompileOptions::device i. `arenas`: what arenas() is, host memory or that of device i. compile() takes
/// host memory and that of its device, kernels_for() that of any of them (gpu/kernels_of.hpp). `name`: "gpu".
[[nodiscard]] std::unique_ptr<nn::Backend> make_backend(std::vector<std::shared_ptr<Device>> devices, std::string name,
                                                        core::MemorySpace arenas = core::MemorySpace::host);

/// The same on HostDevice, for tests: "gpu_on_host", and "gpu_on_host_arenas" whose arenas are device memory that the host cannot read.
[[nodiscard]] std::unique_ptr<nn::Backend> make_backend_on_host();
[[nodiscard]] std::unique_ptr<nn::Backend> make_backend_on_host_arenas();

}  // namespace troupe::gpu
