/// The NativeReduction (transport/native_reduction.hpp) of a core::DeviceReduction: sums complete in a CompletionQueue. Thread-safe.
#pragma once

#include <memory>
#include <mutex>

#include "core/devices/device_reduction.hpp"
#include "transport/native_reduction.hpp"

namespace troupe::transport {

class DeviceSums final : public NativeReduction {
 public:
  DeviceSums(std::shared_ptr<core::DeviceReduction> reduction, std::shared_ptr<CompletionQueue> completions);

  [[nodiscard]] std::size_t members() const noexcept override;
  [[nodiscard]] core::Result<OperationId> sum(core::Span vector) override;
  /// Joins a group; the operation completes when all its members have, or failed.
  [[nodiscard]] OperationId join(const std::string& group, std::size_t rank, std::size_t members);
  /// Errc::usage after close().
  [[nodiscard]] core::Result<std::string> make_group();

  void abort(const core::Error& why);
  [[nodiscard]] core::Result<void> check();
  /// Ends all sums; when it returns their completions are in the queue.
  void close();

 private:
  [[nodiscard]] std::shared_ptr<core::DeviceReduction> reduction() const;
  [[nodiscard]] core::DeviceReduction::Done completes(OperationId operation) const;

  const std::shared_ptr<CompletionQueue> completions_;
  mutable std::mutex mutex_;
  std::shared_ptr<core::DeviceReduction> reduction_;  // guarded by mutex_; null: closed
};

}  // namespace troupe::transport
