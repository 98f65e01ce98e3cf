#include "core/devices/management_library.hpp"

#include <dlfcn.h>

#include <array>

#include <fmt/format.h>

namespace troupe::core {
namespace {

// Declarations of NVML's that we use: its header comes with CUDA only.
using NvmlDevice = struct NvmlOpaqueDevice*;
struct NvmlUtilization {
  unsigned int gpu = 0;  // percent
  unsigned int memory = 0;
};
struct NvmlMemory {
  unsigned long long total = 0;  // bytes
  unsigned long long free = 0;
  unsigned long long used = 0;
};
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlNotSupported = 3;
constexpr unsigned int kNvmlTextBytes = 96;

struct NvmlLibrary {
  int (*init)() = nullptr;
  int (*shut_down)() = nullptr;
  int (*count)(unsigned int*) = nullptr;
  int (*at)(unsigned int, NvmlDevice*) = nullptr;
  int (*name)(NvmlDevice, char*, unsigned int) = nullptr;
  int (*uuid)(NvmlDevice, char*, unsigned int) = nullptr;
  int (*utilization)(NvmlDevice, NvmlUtilization*) = nullptr;
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  const char* (*text)(int) = nullptr;
};

Result<NvmlLibrary> open_nvml(const std::string& name) {
  NvmlLibrary library;
  void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays loaded
  if (!handle) return fail(Errc::config, fmt::format("NVIDIA's management library cannot be loaded: {}", ::dlerror()));
  std::string missing;
  const auto find = [&]<class Function>(const char* symbol, Function*& function) {
    function = reinterpret_cast<Function*>(::dlsym(handle, symbol));
    if (!function) missing += (missing.empty() ? "" : ", ") + std::string(symbol);
  };
  find("nvmlInit_v2", library.init);
  find("nvmlShutdown", library.shut_down);
  find("nvmlDeviceGetCount_v2", library.count);
  find("nvmlDeviceGetHandleByIndex_v2", library.at);
  find("nvmlDeviceGetName", library.name);
  find("nvmlDeviceGetUUID", library.uuid);
  find("nvmlDeviceGetUtilizationRates", library.utilization);
  find("nvmlDeviceGetMemoryInfo", library.memory);
  find("nvmlErrorString", library.text);
  if (!missing.empty()) return fail(Errc::config, fmt::format("{} has no {}: it is no NVML", name, missing));
  return library;
}

tl::unexpected<Error> failed_call(const NvmlLibrary& library, const char* call, int status) {
  const char* text = library.text(status);
  return fail(Errc::io, fmt::format("NVML: {}: {}", call, text ? text : "an unknown error"));
}

/// A part that a device does not support stays as it is.
Result<GpuState> state_of(const NvmlLibrary& library, unsigned int index) {
  NvmlDevice device = nullptr;
  if (const int status = library.at(index, &device); status != kNvmlSuccess)
    return failed_call(library, "nvmlDeviceGetHandleByIndex_v2", status);
  std::array<char, kNvmlTextBytes> name{}, uuid{};
  if (const int status = library.name(device, name.data(), kNvmlTextBytes - 1); status != kNvmlSuccess)
    return failed_call(library, "nvmlDeviceGetName", status);
  if (const int status = library.uuid(device, uuid.data(), kNvmlTextBytes - 1); status != kNvmlSuccess)
    return failed_call(library, "nvmlDeviceGetUUID", status);
  GpuState state{name.data(), uuid.data()};
  NvmlUtilization utilization;
  const int busy = library.utilization(device, &utilization);
  if (busy != kNvmlSuccess && busy != kNvmlNotSupported)
    return failed_call(library, "nvmlDeviceGetUtilizationRates", busy);
  if (busy == kNvmlSuccess) state.load = utilization.gpu;
  NvmlMemory memory;
  const int held = library.memory(device, &memory);
  if (held != kNvmlSuccess && held != kNvmlNotSupported) return failed_call(library, "nvmlDeviceGetMemoryInfo", held);
  state.memory_bytes = memory.total;
  state.memory_used_bytes = memory.used;
  return state;
}

Result<std::vector<GpuState>> states_of(const NvmlLibrary& library) {
  unsigned int count = 0;
  if (const int status = library.count(&count); status != kNvmlSuccess)
    return failed_call(library, "nvmlDeviceGetCount_v2", status);
  std::vector<GpuState> states;
  for (unsigned int i = 0; i < count; ++i) {
    auto state = state_of(library, i);
    if (!state) return tl::unexpected(state.error());
    states.push_back(std::move(*state));
  }
  return states;
}

}  // namespace

Result<std::vector<GpuState>> gpu_states(const std::string& library) {
  const auto nvml = open_nvml(library);
  if (!nvml) return tl::unexpected(nvml.error());
  if (const int status = nvml->init(); status != kNvmlSuccess) return failed_call(*nvml, "nvmlInit_v2", status);
  auto states = states_of(*nvml);
  (void)nvml->shut_down();
  return states;
}

std::string to_text(const GpuState& state) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  const auto load = state.load ? fmt::format("{} % busy", *state.load) : std::string("load unknown");
  if (state.memory_bytes == 0) return load;
  return fmt::format("{}, {:.1f} of {:.1f} GiB in use", load, static_cast<double>(state.memory_used_bytes) / kGiB,
                     static_cast<double>(state.memory_bytes) / kGiB);
}

}  // namespace troupe::core
