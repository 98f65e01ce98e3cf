/// The copier of CUDA devices (core/devices/device_copier.hpp), from the module troupe_cuda.so, which is loaded when it is asked for.
#pragma once

#include <memory>

#include "core/devices/device_copier.hpp"
#include "core/error.hpp"

namespace troupe::transport {

using core::DeviceCopier;

/// The symbols that a module exports: "troupe_copier_version" and "troupe_make_copier". Raise the version with every change of this header
/// or of core/devices/device_copier.hpp: the loader refuses a module of another version.
inline constexpr int kCopierVersion = 2;
using CopierVersion = int();
using MakeCopier = void(int device, core::Result<std::shared_ptr<DeviceCopier>>& made);

/// Loads troupe_cuda.so and makes a copier for `device`, for EndpointOptions::device. Errc::config when the module cannot be loaded or the
/// device does not exist. One thread at a time.
[[nodiscard]] core::Result<std::shared_ptr<DeviceCopier>> make_device_copier(int device);

}  // namespace troupe::transport
