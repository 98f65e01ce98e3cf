/// cuDNN 9's graph API: the functions of libcudnn.so.9, loaded when they are needed. Thread-safe.
#pragma once

#include <cudnn_graph.h>

#include <memory>
#include <source_location>
#include <string>

#include "core/error.hpp"

namespace troupe::gpu {

struct CudnnLibrary {
  decltype(&::cudnnGetVersion) get_version = nullptr;
  decltype(&::cudnnGetErrorString) error_string = nullptr;
  decltype(&::cudnnGetLastErrorString) last_error = nullptr;
  decltype(&::cudnnCreate) create = nullptr;
  decltype(&::cudnnDestroy) destroy = nullptr;
  decltype(&::cudnnSetStream) set_stream = nullptr;
  decltype(&::cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&::cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&::cudnnBackendFinalize) finalize = nullptr;
  decltype(&::cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&::cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&::cudnnBackendExecute) execute = nullptr;
  bool compiles = false;  // libnvrtc is there: cuDNN can compile fusions at run time

  /// Loads the library once for the process. Errc::config when it is missing, lacks a function or is older than 9.8, the first that plans for
  /// a device that is only described (CudnnTarget).
  [[nodiscard]] static core::Result<std::shared_ptr<const CudnnLibrary>> open();

  [[nodiscard]] std::string version() const;  // "9.19.0"

  /// The error of a failed call: operation, cuDNN's text, file and line. Errc::out_of_memory when memory ran out, else Errc::io.
  [[nodiscard]] core::Error error(cudnnStatus_t status, const char* operation,
                                  const std::source_location& where = std::source_location::current()) const;
};

}  // namespace troupe::gpu
