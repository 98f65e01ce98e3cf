#include "gpu/cuda/cublas/matrix.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <type_traits>

#include <fmt/format.h>

namespace troupe::gpu {
namespace {

constexpr std::string_view kName = "cublaslt";

cudaDataType data_type_of(Type type) {
  switch (type) {
    case Type::fp32: return CUDA_R_32F;
    case Type::bf16: return CUDA_R_16BF;
    case Type::fp16: return CUDA_R_16F;
  }
  return CUDA_R_32F;
}

/// Sums that are split may be kept only where they do not lose bits: in float32 in the workspace, or in a float32 result, where the order of
/// the parts may differ from run to run.
std::uint32_t reduction_schemes(const MatrixCall& call, const MatrixArithmetic& arithmetic) {
  std::uint32_t mask = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  if (call.d.type == Type::fp32 && !arithmetic.deterministic) mask |= CUBLASLT_REDUCTION_SCHEME_INPLACE;
  return mask;
}

/// Owns a descriptor of cuBLASLt's.
template <class Raw>
using Owned = std::unique_ptr<std::remove_pointer_t<Raw>, cublasStatus_t (*)(Raw)>;

/// The operation and the layouts of a call.
struct Descriptors {
  Owned<cublasLtMatmulDesc_t> operation;
  Owned<cublasLtMatrixLayout_t> first, second, d;
};

core::Result<Owned<cublasLtMatrixLayout_t>> make_layout(const CublasLibrary& library, const ColumnMatrix& matrix) {
  cublasLtMatrixLayout_t raw = nullptr;
  const auto status = library.create_layout(&raw, data_type_of(matrix.type), static_cast<std::uint64_t>(matrix.rows),
                                            static_cast<std::uint64_t>(matrix.columns), matrix.leading);
  if (status != CUBLAS_STATUS_SUCCESS) return tl::unexpected(library.error(status, "cublasLtMatrixLayoutCreate"));
  return Owned<cublasLtMatrixLayout_t>(raw, library.destroy_layout);
}

core::Result<Owned<cublasLtMatmulDesc_t>> make_operation(const CublasLibrary& library, const MatrixCall& call,
                                                         Math math, const void* bias) {
  const auto compute =
      call.first.type == Type::fp32 && math == Math::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasLtMatmulDesc_t raw = nullptr;
  auto status = library.create_operation(&raw, compute, CUDA_R_32F);
  if (status != CUBLAS_STATUS_SUCCESS) return tl::unexpected(library.error(status, "cublasLtMatmulDescCreate"));
  Owned<cublasLtMatmulDesc_t> operation(raw, library.destroy_operation);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    if (status == CUBLAS_STATUS_SUCCESS) status = library.set_operation(raw, attribute, &value, sizeof(value));
  };
  const auto transposed = [](bool transpose) -> std::int32_t { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(CUBLASLT_MATMUL_DESC_TRANSA, transposed(call.transpose_first));
  set(CUBLASLT_MATMUL_DESC_TRANSB, transposed(call.transpose_second));
  const std::uint32_t epilogue = call.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  if (call.bias) {
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(data_type_of(call.d.type)));
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  }
  if (status != CUBLAS_STATUS_SUCCESS) return tl::unexpected(library.error(status, "cublasLtMatmulDescSetAttribute"));
  return operation;
}

core::Result<Descriptors> make_descriptors(const CublasLibrary& library, const MatrixCall& call, Math math,
                                           const void* bias) {
  auto operation = make_operation(library, call, math, bias);
  if (!operation) return tl::unexpected(operation.error());
  auto first = make_layout(library, call.first), second = make_layout(library, call.second),
       d = make_layout(library, call.d);
  for (const auto* layout : {&first, &second, &d})
    if (!*layout) return tl::unexpected(layout->error());
  return Descriptors{std::move(*operation), std::move(*first), std::move(*second), std::move(*d)};
}

/// Stands for the bias where only its alignment counts.
const void* some_bias() { return reinterpret_cast<const void*>(std::uintptr_t{16}); }

core::Result<Owned<cublasLtMatmulPreference_t>> make_preference(const CublasLibrary& library, std::size_t workspace,
                                                                std::uint32_t schemes) {
  cublasLtMatmulPreference_t raw = nullptr;
  auto status = library.create_preference(&raw);
  if (status != CUBLAS_STATUS_SUCCESS) return tl::unexpected(library.error(status, "cublasLtMatmulPreferenceCreate"));
  Owned<cublasLtMatmulPreference_t> preference(raw, library.destroy_preference);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    if (status == CUBLAS_STATUS_SUCCESS) status = library.set_preference(raw, attribute, &value, sizeof(value));
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace));
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
  for (const auto alignment : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(alignment, std::uint32_t{16});
  if (status != CUBLAS_STATUS_SUCCESS)
    return tl::unexpected(library.error(status, "cublasLtMatmulPreferenceSetAttribute"));
  return preference;
}

/// An attribute of the configuration, or `otherwise` where the algorithm has none.
template <class Value>
Value configured(const CublasLibrary& library, const cublasLtMatmulAlgo_t& algorithm,
                 cublasLtMatmulAlgoConfigAttributes_t attribute, Value otherwise) {
  Value value{};
  std::size_t written = 0;
  const auto status = library.get_algorithm(&algorithm, attribute, &value, sizeof(value), &written);
  return status == CUBLAS_STATUS_SUCCESS && written == sizeof(value) ? value : otherwise;
}

}  // namespace

std::string algorithm_name(const CublasLibrary& library, const cublasLtMatmulAlgo_t& algorithm) {
  std::string name = fmt::format("{} {} {}", kName, library.get_version(),
                                 configured<std::int32_t>(library, algorithm, CUBLASLT_ALGO_CONFIG_ID, -1));
  for (const std::uint64_t word : algorithm.data) name += fmt::format(" {:x}", word);
  return name;
}

std::optional<cublasLtMatmulAlgo_t> parse_algorithm(const CublasLibrary& library, std::string_view name) {
  const auto next = [&]() {
    const auto word = name.substr(0, name.find(' '));
    name.remove_prefix(std::min(name.size(), word.size() + 1));
    return word;
  };
  if (next() != kName || next() != std::to_string(library.get_version())) return std::nullopt;
  (void)next();  // the number is part of the configuration
  cublasLtMatmulAlgo_t algorithm{};
  for (std::uint64_t& word : algorithm.data) {
    const auto text = next();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), word, 16);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  }
  return name.empty() ? std::optional(algorithm) : std::nullopt;
}

core::Result<std::vector<CublasPlan>> find_products(const CublasLibrary& library, cublasLtHandle_t handle,
                                                    const MatrixCall& call, const MatrixArithmetic& arithmetic,
                                                    std::size_t workspace, int most) {
  const auto descriptors = make_descriptors(library, call, arithmetic.math, some_bias());
  if (!descriptors) return tl::unexpected(descriptors.error());
  const auto preference = make_preference(library, workspace, reduction_schemes(call, arithmetic));
  if (!preference) return tl::unexpected(preference.error());
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(most));
  int count = 0;
  const auto status =
      library.heuristic(handle, descriptors->operation.get(), descriptors->first.get(), descriptors->second.get(),
                        descriptors->d.get(), descriptors->d.get(), preference->get(), most, results.data(), &count);
  std::vector<CublasPlan> plans;
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return plans;
  if (status != CUBLAS_STATUS_SUCCESS) return tl::unexpected(library.error(status, "cublasLtMatmulAlgoGetHeuristic"));
  for (int i = 0; i < count; ++i) {
    const auto& result = results[static_cast<std::size_t>(i)];
    if (result.state != CUBLAS_STATUS_SUCCESS || result.workspaceSize > workspace) continue;
    plans.push_back({call, arithmetic, result.algo, result.workspaceSize, algorithm_name(library, result.algo)});
  }
  return plans;
}

core::Result<CublasPlan> find_product(const CublasLibrary& library, cublasLtHandle_t handle, const MatrixCall& call,
                                      const MatrixArithmetic& arithmetic, std::size_t workspace,
                                      std::string_view name) {
  const auto refused = [&](std::string_view why) {
    return core::fail(core::Errc::config, fmt::format("cuBLAS: \"{}\" {}", name, why));
  };
  const auto algorithm = parse_algorithm(library, name);
  if (!algorithm) return refused("is no algorithm of this version");
  const auto descriptors = make_descriptors(library, call, arithmetic.math, some_bias());
  if (!descriptors) return tl::unexpected(descriptors.error());
  const auto scheme = configured<std::uint32_t>(library, *algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
                                                CUBLASLT_REDUCTION_SCHEME_NONE);
  if ((scheme & ~reduction_schemes(call, arithmetic)) != 0) return refused("does not add as exactly as asked");
  cublasLtMatmulHeuristicResult_t result{};
  const auto status =
      library.check_algorithm(handle, descriptors->operation.get(), descriptors->first.get(), descriptors->second.get(),
                              descriptors->d.get(), descriptors->d.get(), &*algorithm, &result);
  if (status != CUBLAS_STATUS_SUCCESS) return refused("cannot compute this product on this device");
  if (result.workspaceSize > workspace) return refused("needs more workspace");
  return CublasPlan{call, arithmetic, *algorithm, result.workspaceSize, std::string(name)};
}

core::Result<void> run_product(const CublasLibrary& library, cublasLtHandle_t handle, const CublasPlan& plan,
                               const void* first, const void* second, void* d, const void* bias, void* workspace,
                               cudaStream_t stream) {
  const auto descriptors = make_descriptors(library, plan.call, plan.arithmetic.math, bias);
  if (!descriptors) return tl::unexpected(descriptors.error());
  const float one = 1, zero = 0;
  const auto status = library.matmul(handle, descriptors->operation.get(), &one, first, descriptors->first.get(),
                                     second, descriptors->second.get(), &zero, d, descriptors->d.get(), d,
                                     descriptors->d.get(), &plan.algorithm, workspace, plan.workspace, stream);
  if (status != CUBLAS_STATUS_SUCCESS) return tl::unexpected(library.error(status, "cublasLtMatmul"));
  return {};
}

}  // namespace troupe::gpu
