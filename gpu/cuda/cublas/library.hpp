/// cuBLASLt: the functions of libcublasLt.so.13, or else .12, loaded when they are needed. Thread-safe.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <source_location>
#include <string>

#include "core/error.hpp"

namespace troupe::gpu {

struct CublasLibrary {
  decltype(&::cublasLtGetVersion) get_version = nullptr;
  decltype(&::cublasLtGetStatusString) status_string = nullptr;
  decltype(&::cublasLtCreate) create = nullptr;
  decltype(&::cublasLtDestroy) destroy = nullptr;
  decltype(&::cublasLtMatmul) matmul = nullptr;
  decltype(&::cublasLtMatmulDescCreate) create_operation = nullptr;
  decltype(&::cublasLtMatmulDescDestroy) destroy_operation = nullptr;
  decltype(&::cublasLtMatmulDescSetAttribute) set_operation = nullptr;
  decltype(&::cublasLtMatrixLayoutCreate) create_layout = nullptr;
  decltype(&::cublasLtMatrixLayoutDestroy) destroy_layout = nullptr;
  decltype(&::cublasLtMatmulPreferenceCreate) create_preference = nullptr;
  decltype(&::cublasLtMatmulPreferenceDestroy) destroy_preference = nullptr;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&::cublasLtMatmulAlgoCheck) check_algorithm = nullptr;
  decltype(&::cublasLtMatmulAlgoConfigGetAttribute) get_algorithm = nullptr;

  /// Loads the library once for the process. Errc::config when it is missing or lacks a function.
  [[nodiscard]] static core::Result<std::shared_ptr<const CublasLibrary>> open();

  [[nodiscard]] std::string version() const;  // "13.1.0"

  /// The error of a failed call: operation, cuBLAS's text, file and line. Errc::out_of_memory when memory ran out, else Errc::io.
  [[nodiscard]] core::Error error(cublasStatus_t status, const char* operation,
                                  const std::source_location& where = std::source_location::current()) const;
};

}  // namespace troupe::gpu
