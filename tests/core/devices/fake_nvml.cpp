// NVIDIA's management library with two devices, for tests. TROUPE_FAKE_NVML in the environment names the call that fails; the second device
// does not tell its load.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Device {
  const char* name;
  const char* uuid;
  unsigned int busy;
  unsigned long long total, used;
};
Device devices[] = {{"NVIDIA H200", "GPU-1111", 34, 150323855360ULL, 13421772800ULL},
                    {"NVIDIA H200 MIG 1g.18gb", "GPU-2222", 0, 19327352832ULL, 0}};
int sessions = 0;

int answer(const char* call) {
  const char* failing = std::getenv("TROUPE_FAKE_NVML");
  if (failing && std::strcmp(failing, call) == 0) return 999;
  return sessions > 0 || std::strcmp(call, "nvmlInit_v2") == 0 ? 0 : 1;  // 1: not initialised
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  const int status = answer("nvmlInit_v2");
  if (status == 0) ++sessions;
  return status;
}
int nvmlShutdown() { return --sessions, 0; }
int nvmlDeviceGetCount_v2(unsigned int* count) { return *count = 2, answer("nvmlDeviceGetCount_v2"); }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, Device** device) {
  *device = &devices[index];
  return answer("nvmlDeviceGetHandleByIndex_v2");
}
int nvmlDeviceGetName(Device* device, char* text, unsigned int bytes) {
  std::snprintf(text, bytes, "%s", device->name);
  return answer("nvmlDeviceGetName");
}
int nvmlDeviceGetUUID(Device* device, char* text, unsigned int bytes) {
  std::snprintf(text, bytes, "%s", device->uuid);
  return answer("nvmlDeviceGetUUID");
}
int nvmlDeviceGetUtilizationRates(Device* device, unsigned int* rates) {
  if (device == &devices[1]) return 3;  // not supported
  rates[0] = device->busy, rates[1] = 7;
  return answer("nvmlDeviceGetUtilizationRates");
}
int nvmlDeviceGetMemoryInfo(Device* device, unsigned long long* bytes) {
  bytes[0] = device->total, bytes[1] = device->total - device->used, bytes[2] = device->used;
  return answer("nvmlDeviceGetMemoryInfo");
}
const char* nvmlErrorString(int status) { return status == 999 ? "Unknown Error" : "Uninitialized"; }
}
