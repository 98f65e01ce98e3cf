// The symbols that troupe_cuda.so exports.
#include "transport/device/cuda_copier.hpp"

extern "C" {

troupe::transport::CopierVersion troupe_copier_version;
troupe::transport::MakeCopier troupe_make_copier;

int troupe_copier_version() { return troupe::transport::kCopierVersion; }

void troupe_make_copier(int device, troupe::core::Result<std::shared_ptr<troupe::transport::DeviceCopier>>& made) {
  made = troupe::transport::CudaCopier::make(device);
}
}
