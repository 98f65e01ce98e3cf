/// NCCL: the functions of libnccl.so.2 that sums need, loaded when they are needed. The declarations are our own, of NCCL's public interface, so
/// that its header is not needed. Thread-safe.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "core/error.hpp"

namespace troupe::gpu {

using NcclComm = struct NcclOpaqueComm*;
struct NcclUniqueId {
  std::array<char, 128> bytes{};
};
inline constexpr int kNcclSuccess = 0;
inline constexpr int kNcclInvalidUsage = 5;
inline constexpr int kNcclInProgress = 7;
inline constexpr int kNcclFloat32 = 7;
inline constexpr int kNcclSum = 0;

struct NcclLibrary {
  int (*get_version)(int*) = nullptr;
  int (*get_unique_id)(NcclUniqueId*) = nullptr;
  int (*init_rank)(NcclComm*, int ranks, NcclUniqueId, int rank) = nullptr;
  int (*all_reduce)(const void* from, void* to, std::size_t count, int type, int operation, NcclComm,
                    void* stream) = nullptr;
  int (*get_async_error)(NcclComm, int*) = nullptr;
  int (*abort)(NcclComm) = nullptr;
  const char* (*text)(int) = nullptr;

  /// Loads `name`, which stays loaded. Errc::config when it is missing or lacks a function.
  [[nodiscard]] static core::Result<std::shared_ptr<const NcclLibrary>> open(const std::string& name = "libnccl.so.2");

  [[nodiscard]] std::string version() const;  // "2.27.3"
  [[nodiscard]] std::string path() const;     // of the file that was loaded; empty: not known
  /// Errc::io: "NCCL: ncclAllReduce: unhandled system error".
  [[nodiscard]] core::Error error(int status, const char* call) const;
};

}  // namespace troupe::gpu
