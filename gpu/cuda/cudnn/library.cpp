#include "gpu/cuda/cudnn/library.hpp"

#include <array>

#include <fmt/format.h>

#include "gpu/cuda/libraries/shared_library.hpp"
#include "gpu/cuda/libraries/source_text.hpp"

namespace troupe::gpu {
namespace {

constexpr std::size_t kOldest = 90800;  // major · 10000 + minor · 100 + patch

core::Result<std::shared_ptr<const CudnnLibrary>> load_cudnn() {
  const auto opened = SharedLibrary::open("libcudnn.so.9");
  if (!opened) return tl::unexpected(opened.error());
  auto library = std::make_shared<CudnnLibrary>();
  std::string missing;
  opened->find("cudnnGetVersion", library->get_version, missing);
  opened->find("cudnnGetErrorString", library->error_string, missing);
  opened->find("cudnnGetLastErrorString", library->last_error, missing);
  opened->find("cudnnCreate", library->create, missing);
  opened->find("cudnnDestroy", library->destroy, missing);
  opened->find("cudnnSetStream", library->set_stream, missing);
  opened->find("cudnnBackendCreateDescriptor", library->create_descriptor, missing);
  opened->find("cudnnBackendDestroyDescriptor", library->destroy_descriptor, missing);
  opened->find("cudnnBackendFinalize", library->finalize, missing);
  opened->find("cudnnBackendSetAttribute", library->set_attribute, missing);
  opened->find("cudnnBackendGetAttribute", library->get_attribute, missing);
  opened->find("cudnnBackendExecute", library->execute, missing);
  if (!missing.empty())
    return core::fail(core::Errc::config, fmt::format("libcudnn.so.9 has no {}: install cuDNN 9.8 or later", missing));
  if (library->get_version() < kOldest)
    return core::fail(core::Errc::config, fmt::format("cuDNN is {}: install 9.8 or later", library->version()));
  // cuDNN opens the compiler by name: opened here, it is found also where only the usual folders have it.
  library->compiles =
      SharedLibrary::open("libnvrtc.so.13").has_value() || SharedLibrary::open("libnvrtc.so.12").has_value();
  return library;
}

}  // namespace

core::Result<std::shared_ptr<const CudnnLibrary>> CudnnLibrary::open() {
  static const auto loaded = load_cudnn();
  return loaded;
}

std::string CudnnLibrary::version() const {
  const std::size_t version = get_version();
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

core::Error CudnnLibrary::error(cudnnStatus_t status, const char* operation, const std::source_location& where) const {
  std::array<char, 512> detail{};
  last_error(detail.data(), detail.size());
  const bool memory = status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  return {memory ? core::Errc::out_of_memory : core::Errc::io,
          fmt::format("cuDNN: {} failed: {}{} ({})", operation, error_string(status), one_line(detail.data()),
                      source_text(where))};
}

}  // namespace troupe::gpu
