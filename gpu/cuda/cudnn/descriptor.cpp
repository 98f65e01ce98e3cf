#include "gpu/cuda/cudnn/descriptor.hpp"

namespace troupe::gpu {

core::Result<CudnnDescriptor> CudnnDescriptor::create(const std::shared_ptr<const CudnnLibrary>& library,
                                                      cudnnBackendDescriptorType_t type,
                                                      const std::source_location& where) {
  cudnnBackendDescriptor_t raw = nullptr;
  const auto status = library->create_descriptor(type, &raw);
  if (status != CUDNN_STATUS_SUCCESS)
    return tl::unexpected(library->error(status, "cudnnBackendCreateDescriptor", where));
  return CudnnDescriptor(library, raw);
}

CudnnDescriptor::~CudnnDescriptor() {
  if (raw_) (void)library_->destroy_descriptor(raw_);
}

core::Result<std::vector<CudnnDescriptor>> CudnnDescriptor::get_descriptors(cudnnBackendAttributeName_t name,
                                                                            cudnnBackendDescriptorType_t type,
                                                                            std::size_t most,
                                                                            const std::source_location& where) const {
  std::vector<CudnnDescriptor> made;
  std::vector<cudnnBackendDescriptor_t> raws;
  for (std::size_t i = 0; i < most; ++i) {
    auto one = create(library_, type, where);
    if (!one) return tl::unexpected(one.error());
    raws.push_back(one->raw());
    made.push_back(std::move(*one));
  }
  std::int64_t count = 0;
  const auto status = library_->get_attribute(raw_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                              static_cast<std::int64_t>(most), &count, raws.data());
  if (status != CUDNN_STATUS_SUCCESS) return tl::unexpected(library_->error(status, "cudnnBackendGetAttribute", where));
  // cuDNN reports how many there are, which may be more than were asked for.
  while (made.size() > static_cast<std::size_t>(count)) made.pop_back();
  return made;
}

CudnnBuilder::CudnnBuilder(const std::shared_ptr<const CudnnLibrary>& library, cudnnBackendDescriptorType_t type,
                           const std::source_location& where)
    : descriptor_(CudnnDescriptor::create(library, type, where)) {}

CudnnBuilder& CudnnBuilder::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                                const void* values, const std::source_location& where) {
  if (!descriptor_) return *this;
  const auto& library = descriptor_->library();
  const auto status = library->set_attribute(descriptor_->raw(), name, type, count, values);
  if (status != CUDNN_STATUS_SUCCESS)
    descriptor_ = tl::unexpected(library->error(status, "cudnnBackendSetAttribute", where));
  return *this;
}

core::Result<CudnnDescriptor> CudnnBuilder::finish(const std::source_location& where) {
  if (!descriptor_) return tl::unexpected(descriptor_.error());
  const auto& library = descriptor_->library();
  const auto status = library->finalize(descriptor_->raw());
  if (status != CUDNN_STATUS_SUCCESS) return tl::unexpected(library->error(status, "cudnnBackendFinalize", where));
  return std::move(*descriptor_);
}

}  // namespace troupe::gpu
