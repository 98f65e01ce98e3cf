#include "gpu/nccl/library.hpp"

#include <dlfcn.h>

#include <fmt/format.h>

namespace troupe::gpu {

core::Result<std::shared_ptr<const NcclLibrary>> NcclLibrary::open(const std::string& name) {
  void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return core::fail(core::Errc::config, fmt::format("NCCL cannot be loaded: {}", ::dlerror()));
  auto library = std::make_shared<NcclLibrary>();
  std::string missing;
  const auto find = [&]<class Function>(const char* symbol, Function*& function) {
    function = reinterpret_cast<Function*>(::dlsym(handle, symbol));
    if (!function) missing += (missing.empty() ? "" : ", ") + std::string(symbol);
  };
  find("ncclGetVersion", library->get_version);
  find("ncclGetUniqueId", library->get_unique_id);
  find("ncclCommInitRank", library->init_rank);
  find("ncclAllReduce", library->all_reduce);
  find("ncclCommGetAsyncError", library->get_async_error);
  find("ncclCommAbort", library->abort);
  find("ncclGetErrorString", library->text);
  if (!missing.empty())
    return core::fail(core::Errc::config, fmt::format("{} has no {}: install NCCL 2.4 or later", name, missing));
  return library;
}

std::string NcclLibrary::version() const {
  int version = 0;
  if (get_version(&version) != kNcclSuccess) return "of unknown version";
  // From 2.9 on major · 10000 + minor · 100 + patch, before it major · 1000 + minor · 100 + patch.
  const int major = version >= 10'000 ? version / 10'000 : version / 1000;
  const int rest = version >= 10'000 ? version % 10'000 : version % 1000;
  return fmt::format("{}.{}.{}", major, rest / 100, rest % 100);
}

std::string NcclLibrary::path() const {
  Dl_info found{};
  if (::dladdr(reinterpret_cast<void*>(get_version), &found) == 0 || !found.dli_fname) return {};
  return found.dli_fname;
}

core::Error NcclLibrary::error(int status, const char* call) const {
  const char* const why = text(status);
  return {core::Errc::io, fmt::format("NCCL: {}: {}", call, why ? why : "an unknown error")};
}

}  // namespace troupe::gpu
