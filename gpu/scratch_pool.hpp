/// Memory for single calls of kernels: a piece of the device's and of pinned memory, and staging for copies. Kept for later calls, because
/// allocating them is slow on a device. Thread-safe: concurrent calls get pieces of their own.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "gpu/staging.hpp"

namespace troupe::gpu {

class ScratchPool {
 public:
  struct Scratch {
    core::Buffer device;
    core::Buffer pinned;
    std::unique_ptr<Staging> staging;  // null before the first copy
  };
  /// Goes back to its pool at the end of its life. REQUIRES that the device does not use it any more.
  class Loan {
   public:
    Loan(ScratchPool& pool, std::unique_ptr<Scratch> scratch) : pool_(&pool), scratch_(std::move(scratch)) {}
    Loan(Loan&&) noexcept = default;
    Loan& operator=(Loan&&) = delete;
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan();
    [[nodiscard]] Scratch& operator*() const noexcept { return *scratch_; }
    [[nodiscard]] Scratch* operator->() const noexcept { return scratch_.get(); }

   private:
    ScratchPool* pool_;
    std::unique_ptr<Scratch> scratch_;
  };

  /// `device` outlives this object, and this object the loans.
  explicit ScratchPool(Device& device) : device_(device) {}

  /// At least so many bytes of each kind. Errors: those of the memory.
  [[nodiscard]] core::Result<Loan> take(std::size_t device_bytes, std::size_t pinned_bytes);
  /// With staging for copies.
  [[nodiscard]] core::Result<Loan> take_staging();

 private:
  [[nodiscard]] std::unique_ptr<Scratch> next();

  Device& device_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> free_;
};

}  // namespace troupe::gpu
