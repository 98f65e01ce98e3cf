// NCCL over processes of one host, for tests: sums in memory of the host, as HostDevice has it, through a file that all ranks map. It begins and
// ends a sum within the call. TROUPE_FAKE_NCCL in the environment names the call that fails.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "tests/wait.hpp"

namespace {

constexpr int kSystemError = 2;
constexpr int kInvalidArgument = 4;
constexpr int kRemoteError = 6;
constexpr int kMostRanks = 8;
constexpr std::size_t kChunk = 4096;  // floats

struct UniqueId {
  char path[128];
};

/// The file.
struct Shared {
  std::atomic<int> joined;
  std::atomic<std::uint32_t> arrived;  // at barriers, over all of them
  float slots[kMostRanks][kChunk];
};

struct Comm {
  Shared* shared = nullptr;
  int rank = 0, ranks = 0;
  std::uint32_t barriers = 0;
  std::atomic<bool> aborted{false};
};

bool fails(const char* call) {
  const char* const failing = std::getenv("TROUPE_FAKE_NCCL");
  return failing && std::strcmp(failing, call) == 0;
}

/// The files of groups that were not joined by all go when the process ends.
struct Files {
  std::mutex mutex;
  std::vector<std::string> paths;
  ~Files() {
    for (const auto& path : paths) ::unlink(path.c_str());
  }
};
Files files;

/// HostDevice hides its addresses: their upper 16 bits are none of a process's.
float* found(const void* address) {
  return reinterpret_cast<float*>(reinterpret_cast<std::uintptr_t>(address) & 0x0000'FFFF'FFFF'FFFFULL);
}

/// False: aborted.
bool barrier(Comm& comm) {
  const auto all = ++comm.barriers * static_cast<std::uint32_t>(comm.ranks);
  comm.shared->arrived.fetch_add(1);
  while (comm.shared->arrived.load() < all) {
    if (comm.aborted.load()) return false;
    ::sched_yield();
  }
  return true;
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) { return *version = 22703, 0; }

const char* ncclGetErrorString(int status) {
  return status == kSystemError ? "unhandled system error" : status == kRemoteError ? "remote process exited" : "other";
}

int ncclGetUniqueId(UniqueId* id) {
  static std::atomic<int> next{0};
  if (fails("ncclGetUniqueId")) return kSystemError;
  std::memset(id, 0, sizeof *id);
  // Not named after the program: tests beside this one look for what its processes leave.
  std::snprintf(id->path, sizeof id->path, "/dev/shm/fake-nccl-%d-%d", ::getpid(), next++);
  const int file = ::open(id->path, O_CREAT | O_EXCL | O_RDWR, 0600);
  if (file < 0) return kSystemError;
  {
    const std::lock_guard lock(files.mutex);
    files.paths.emplace_back(id->path);
  }
  const int sized = ::ftruncate(file, sizeof(Shared));
  ::close(file);
  return sized == 0 ? 0 : kSystemError;
}

int ncclCommInitRank(Comm** made, int ranks, UniqueId id, int rank) {
  if (fails("ncclCommInitRank")) {
    ::unlink(id.path);  // nobody will join
    return kSystemError;
  }
  if (ranks > kMostRanks || rank < 0 || rank >= ranks) return kInvalidArgument;
  const int file = ::open(id.path, O_RDWR);
  if (file < 0) return kSystemError;
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) return kSystemError;
  auto* const comm = new Comm;  // never freed: a thread may be in a call when it is aborted
  comm->shared = static_cast<Shared*>(memory);
  comm->rank = rank;
  comm->ranks = ranks;
  if (comm->shared->joined.fetch_add(1) + 1 == ranks) ::unlink(id.path);
  while (!troupe::tests::eventually([&] { return comm->shared->joined.load() >= ranks; })) {
  }
  *made = comm;
  return 0;
}

int ncclCommAbort(Comm* comm) { return comm->aborted = true, 0; }

int ncclCommGetAsyncError(Comm*, int* status) {
  *status = fails("ncclCommGetAsyncError") ? kRemoteError : 0;
  return 0;
}

int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int operation, Comm* comm, void*) {
  if (fails("ncclAllReduce")) return kSystemError;
  if (type != 7 || operation != 0) return kInvalidArgument;
  const float* const own = found(from);
  float* const sum = found(to);
  for (std::size_t at = 0; at < count; at += kChunk) {
    const std::size_t floats = count - at < kChunk ? count - at : kChunk;
    std::memcpy(comm->shared->slots[comm->rank], own + at, floats * sizeof(float));
    if (!barrier(*comm)) return kRemoteError;
    // From the last rank to the first: not the order of Troupe's own sums.
    for (std::size_t i = 0; i < floats; ++i) {
      float total = 0;
      for (int rank = comm->ranks - 1; rank >= 0; --rank) total += comm->shared->slots[rank][i];
      sum[at + i] = total;
    }
    if (!barrier(*comm)) return kRemoteError;
  }
  return 0;
}
}
