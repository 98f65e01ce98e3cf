/// One descriptor of cuDNN's graph API. Thread rule: one thread at a time; a finished descriptor is read-only and may be used by several.
#pragma once

#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "gpu/cuda/cudnn/library.hpp"

namespace troupe::gpu {

class CudnnDescriptor {
 public:
  /// An unfinished descriptor, as get() of lists needs them.
  [[nodiscard]] static core::Result<CudnnDescriptor> create(
      const std::shared_ptr<const CudnnLibrary>& library, cudnnBackendDescriptorType_t type,
      const std::source_location& where = std::source_location::current());

  CudnnDescriptor(CudnnDescriptor&& other) noexcept
      : library_(std::move(other.library_)), raw_(std::exchange(other.raw_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(library_, other.library_);
    std::swap(raw_, other.raw_);
    return *this;
  }
  CudnnDescriptor(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(const CudnnDescriptor&) = delete;
  ~CudnnDescriptor();

  [[nodiscard]] cudnnBackendDescriptor_t raw() const noexcept { return raw_; }
  [[nodiscard]] const std::shared_ptr<const CudnnLibrary>& library() const noexcept { return library_; }

  /// The one value of an attribute.
  template <class Value>
  [[nodiscard]] core::Result<Value> get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                        const std::source_location& where = std::source_location::current()) const {
    Value value{};
    std::int64_t count = 0;
    const auto status = library_->get_attribute(raw_, name, type, 1, &count, &value);
    if (status != CUDNN_STATUS_SUCCESS)
      return tl::unexpected(library_->error(status, "cudnnBackendGetAttribute", where));
    if (count != 1) return core::fail(core::Errc::io, "cuDNN: an attribute has no value");
    return value;
  }
  /// At most `most` values of an attribute.
  template <class Value>
  [[nodiscard]] core::Result<std::vector<Value>> get_all(
      cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::size_t most,
      const std::source_location& where = std::source_location::current()) const {
    std::vector<Value> values(most);
    std::int64_t count = 0;
    const auto status =
        library_->get_attribute(raw_, name, type, static_cast<std::int64_t>(most), &count, values.data());
    if (status != CUDNN_STATUS_SUCCESS)
      return tl::unexpected(library_->error(status, "cudnnBackendGetAttribute", where));
    if (static_cast<std::size_t>(count) < most) values.resize(static_cast<std::size_t>(count));
    return values;
  }
  /// The descriptors of an attribute, at most `most`. cuDNN fills descriptors that the caller made.
  [[nodiscard]] core::Result<std::vector<CudnnDescriptor>> get_descriptors(
      cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type, std::size_t most,
      const std::source_location& where = std::source_location::current()) const;

 private:
  CudnnDescriptor(std::shared_ptr<const CudnnLibrary> library, cudnnBackendDescriptor_t raw) noexcept
      : library_(std::move(library)), raw_(raw) {}
  std::shared_ptr<const CudnnLibrary> library_;
  cudnnBackendDescriptor_t raw_ = nullptr;
};

/// Makes a descriptor: sets its attributes, then finishes it. The first failure is kept, and later calls do nothing.
class CudnnBuilder {
 public:
  CudnnBuilder(const std::shared_ptr<const CudnnLibrary>& library, cudnnBackendDescriptorType_t type,
               const std::source_location& where = std::source_location::current());

  /// `count` values; cuDNN copies them.
  CudnnBuilder& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                    const void* values, const std::source_location& where = std::source_location::current());
  /// One value. `Value` is what cuDNN's documentation gives for the type: std::int64_t for INT64, bool for BOOLEAN, float for FLOAT.
  template <class Value>
  CudnnBuilder& set_one(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const Value& value,
                        const std::source_location& where = std::source_location::current()) {
    return set(name, type, 1, &value, where);
  }
  CudnnBuilder& set_integers(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values,
                             const std::source_location& where = std::source_location::current()) {
    return set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data(), where);
  }
  CudnnBuilder& set_descriptor(cudnnBackendAttributeName_t name, const CudnnDescriptor& descriptor,
                               const std::source_location& where = std::source_location::current()) {
    return set_one(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, descriptor.raw(), where);
  }
  [[nodiscard]] core::Result<CudnnDescriptor> finish(
      const std::source_location& where = std::source_location::current());

 private:
  core::Result<CudnnDescriptor> descriptor_;
};

}  // namespace troupe::gpu
