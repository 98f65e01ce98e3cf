/// A matrix product as cuBLASLt's descriptors, and cuBLASLt's algorithms for it. Thread rule: one thread at a time; finished algorithms are
/// read-only, and run_product() makes what it changes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "gpu/cuda/cublas/library.hpp"
#include "gpu/plans/matrix_call.hpp"

namespace troupe::gpu {

/// The name of an algorithm: "cublaslt 130100 66 8 …": the library's version, the algorithm's number, then its configuration as cuBLASLt's
/// structure in hexadecimal words, which is what another run of the same version needs to find it again.
[[nodiscard]] std::string algorithm_name(const CublasLibrary& library, const cublasLtMatmulAlgo_t& algorithm);
/// Nothing for text that algorithm_name() does not write with this version.
[[nodiscard]] std::optional<cublasLtMatmulAlgo_t> parse_algorithm(const CublasLibrary& library, std::string_view name);

/// What the product computes with, beside the shapes of its MatrixCall.
struct MatrixArithmetic {
  Math math = Math::fp32;
  bool deterministic = false;
};

struct CublasPlan {
  MatrixCall call;
  MatrixArithmetic arithmetic;
  cublasLtMatmulAlgo_t algorithm{};
  std::size_t workspace = 0;
  std::string name;
};

/// The algorithms of cuBLASLt's heuristic in its order, with at most `workspace` bytes each, at most `most`. May be empty.
/// Sums are float32: parts of a sum that is split are kept in float32 in the workspace and added in a fixed order.
[[nodiscard]] core::Result<std::vector<CublasPlan>> find_products(const CublasLibrary& library, cublasLtHandle_t handle,
                                                                  const MatrixCall& call,
                                                                  const MatrixArithmetic& arithmetic,
                                                                  std::size_t workspace, int most);
/// The plan of one algorithm. Errc::config when this version of the library or this device does not have it for the product, or it needs more
/// workspace.
[[nodiscard]] core::Result<CublasPlan> find_product(const CublasLibrary& library, cublasLtHandle_t handle,
                                                    const MatrixCall& call, const MatrixArithmetic& arithmetic,
                                                    std::size_t workspace, std::string_view name);

/// Enqueues the product. `first`, `second` and `d` are the memory of the call's matrices.
[[nodiscard]] core::Result<void> run_product(const CublasLibrary& library, cublasLtHandle_t handle,
                                             const CublasPlan& plan, const void* first, const void* second, void* d,
                                             const void* bias, void* workspace, cudaStream_t stream);

}  // namespace troupe::gpu
