// The symbols that troupe_gpu.so exports (gpu/device/load.hpp).
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "gpu/cuda/device.hpp"
#include "gpu/device/load.hpp"

namespace troupe::gpu {
namespace {

void survey_devices(DeviceSurvey& survey) {
  int version = 0;
  if (cudaDriverGetVersion(&version) == cudaSuccess && version > 0) survey.driver = version_text(version);
  int count = 0;
  if (const auto status = cudaGetDeviceCount(&count); status != cudaSuccess) {
    survey.no_devices =
        survey.driver.empty() ? "no NVIDIA driver is installed (libcuda.so.1)" : no_devices_text(status, version);
    (void)cudaGetLastError();
    return;
  }
  if (count == 0) survey.no_devices = "the driver shows no device";
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    cudaDeviceProp properties{};
    if (const auto status = cudaGetDeviceProperties(&properties, ordinal); status != cudaSuccess) {
      survey.no_devices = fmt::format("device {}: {}", ordinal, cudaGetErrorString(status));
      (void)cudaGetLastError();
      return;
    }
    FoundDevice found{properties.name,  uuid_text(properties.uuid), properties.major,
                      properties.minor, properties.totalGlobalMem,  {}};
    for (int peer = 0; peer < count; ++peer) {
      int reaches = 0;
      if (peer != ordinal && cudaDeviceCanAccessPeer(&reaches, ordinal, peer) == cudaSuccess && reaches)
        found.peers.push_back(peer);
    }
    survey.devices.push_back(std::move(found));
  }
}

void survey_libraries(DeviceSurvey& survey) {
  const auto cudnn = CudnnLibrary::open();
  const auto cublas = CublasLibrary::open();
  if (!cudnn) survey.no_libraries = cudnn.error().message;
  if (!cublas) survey.no_libraries += (survey.no_libraries.empty() ? "" : "; ") + cublas.error().message;
  if (!cudnn || !cublas) return;
  survey.libraries = fmt::format("CUDA {}, cuDNN {}, cuBLAS {}", version_text(CUDART_VERSION), (*cudnn)->version(),
                                 (*cublas)->version());
  if (!(*cudnn)->compiles)
    survey.no_fusions = "the library libnvrtc is missing: cuDNN fuses only a bias and relu with a convolution";
}

}  // namespace
}  // namespace troupe::gpu

extern "C" {

troupe::gpu::DeviceVersion troupe_gpu_version;
troupe::gpu::MakeDevice troupe_gpu_make;
troupe::gpu::SurveyDevices troupe_gpu_survey;

int troupe_gpu_version() { return troupe::gpu::kDeviceVersion; }

/// The workers of a process share a device, and so its memory.
void troupe_gpu_make(int ordinal, troupe::core::Result<std::shared_ptr<troupe::gpu::Device>>& made) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<troupe::gpu::Device>> devices;
  const std::lock_guard lock(mutex);
  if (auto device = devices[ordinal].lock()) {
    made = std::move(device);
    return;
  }
  auto device = troupe::gpu::CudaDevice::make(ordinal);
  if (!device) {
    made = tl::unexpected(device.error());
    return;
  }
  devices[ordinal] = *device;
  made = std::move(*device);
}

void troupe_gpu_survey(troupe::gpu::DeviceSurvey& survey) {
  troupe::gpu::survey_devices(survey);
  troupe::gpu::survey_libraries(survey);
}
}
