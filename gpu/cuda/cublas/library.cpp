#include "gpu/cuda/cublas/library.hpp"

#include <fmt/format.h>

#include "gpu/cuda/libraries/shared_library.hpp"
#include "gpu/cuda/libraries/source_text.hpp"

namespace troupe::gpu {
namespace {

core::Result<std::shared_ptr<const CublasLibrary>> load_cublas() {
  // CUDA 12's has the same functions: the structures that its callers own did not change.
  auto opened = SharedLibrary::open("libcublasLt.so.13");
  if (!opened)
    if (auto older = SharedLibrary::open("libcublasLt.so.12")) opened = std::move(older);
  if (!opened) return tl::unexpected(opened.error());
  auto library = std::make_shared<CublasLibrary>();
  std::string missing;
  opened->find("cublasLtGetVersion", library->get_version, missing);
  opened->find("cublasLtGetStatusString", library->status_string, missing);
  opened->find("cublasLtCreate", library->create, missing);
  opened->find("cublasLtDestroy", library->destroy, missing);
  opened->find("cublasLtMatmul", library->matmul, missing);
  opened->find("cublasLtMatmulDescCreate", library->create_operation, missing);
  opened->find("cublasLtMatmulDescDestroy", library->destroy_operation, missing);
  opened->find("cublasLtMatmulDescSetAttribute", library->set_operation, missing);
  opened->find("cublasLtMatrixLayoutCreate", library->create_layout, missing);
  opened->find("cublasLtMatrixLayoutDestroy", library->destroy_layout, missing);
  opened->find("cublasLtMatmulPreferenceCreate", library->create_preference, missing);
  opened->find("cublasLtMatmulPreferenceDestroy", library->destroy_preference, missing);
  opened->find("cublasLtMatmulPreferenceSetAttribute", library->set_preference, missing);
  opened->find("cublasLtMatmulAlgoGetHeuristic", library->heuristic, missing);
  opened->find("cublasLtMatmulAlgoCheck", library->check_algorithm, missing);
  opened->find("cublasLtMatmulAlgoConfigGetAttribute", library->get_algorithm, missing);
  if (!missing.empty())
    return core::fail(core::Errc::config, fmt::format("libcublasLt has no {}: install CUDA 13's cuBLAS", missing));
  return library;
}

}  // namespace

core::Result<std::shared_ptr<const CublasLibrary>> CublasLibrary::open() {
  static const auto loaded = load_cublas();
  return loaded;
}

std::string CublasLibrary::version() const {
  const std::size_t version = get_version();  // major · 10000 + minor · 100 + patch
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

core::Error CublasLibrary::error(cublasStatus_t status, const char* operation,
                                 const std::source_location& where) const {
  return {status == CUBLAS_STATUS_ALLOC_FAILED ? core::Errc::out_of_memory : core::Errc::io,
          fmt::format("cuBLAS: {} failed: {} ({})", operation, status_string(status), source_text(where))};
}

}  // namespace troupe::gpu
