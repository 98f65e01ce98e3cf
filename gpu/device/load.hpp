/// Devices of this machine, from the module troupe_gpu.so (gpu/cuda/), which is loaded when it is asked for: the program starts where no
/// driver and no library of CUDA is installed. Thread rule: one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "gpu/device/device.hpp"

namespace troupe::gpu {

/// One device as the driver shows it.
struct FoundDevice {
  std::string name;  // "NVIDIA H200"
  std::string uuid;
  int compute_major = 0;
  int compute_minor = 0;
  std::size_t memory = 0;  // bytes
  std::vector<int> peers;  // ordinals of the devices whose memory it reaches directly
};

/// What `troupe doctor` says. Each `no_…` is empty or says why not, in one line.
struct DeviceSurvey {
  bool built = false;  // the module is there and is of this build
  std::string no_module;
  std::string driver;  // the CUDA version that the driver supports: "13.0"; empty: no driver
  std::string no_devices;
  std::vector<FoundDevice> devices;
  std::string libraries;  // "CUDA 13.0, cuDNN 9.19.0, cuBLAS 13.1.0.3"; empty: one of them is missing
  std::string no_libraries;
  std::string
      no_fusions;  // why cuDNN cannot compile fusions at run time: convolutions with other epilogues than a bias and relu are slower
};

/// The device of this number. Errc::config: the module, its libraries or the device are not there.
[[nodiscard]] core::Result<std::shared_ptr<Device>> load_device(int ordinal);

/// Whether the module is there and is of this build. Opens no device.
[[nodiscard]] bool has_module();

/// Everything of the machine. Errors are in the survey.
[[nodiscard]] DeviceSurvey devices();

/// The symbols that the module exports: "troupe_gpu_version", "troupe_gpu_make" and "troupe_gpu_survey". Raise the version with every change
/// of gpu/device/ or gpu/kernels/ that a module of an earlier build would not know: the loader refuses a module of another version.
inline constexpr int kDeviceVersion = 5;
using DeviceVersion = int();
using MakeDevice = void(int ordinal, core::Result<std::shared_ptr<Device>>& made);
using SurveyDevices = void(DeviceSurvey& survey);

}  // namespace troupe::gpu
