/// Reusable vectors of an Allocator: an exchange that is like the last one allocates none, and zeroes none. Never keeps more memory than was
/// lent at once, and lends no vector that is much more than twice as long as what was asked for. Thread-safe, because a vector's last owner may be
/// a member with a thread of its own.
#pragma once

#include <cstddef>
#include <memory>

#include "core/buffer.hpp"
#include "core/kernels.hpp"

namespace troupe::exchange {

class VectorPool {
 public:
  /// A borrowed vector. Its destructor returns it. May outlive the pool, not the allocator. Move-only.
  class Loan;

  /// `memory` outlives the pool and its loans.
  explicit VectorPool(core::Allocator& memory);

  /// Contents are undefined. No floats: an empty loan. Errors: the allocator's.
  [[nodiscard]] core::Result<Loan> take(std::size_t floats);
  /// Vectors allocated so far: constant in a steady state.
  [[nodiscard]] std::size_t made() const;
  /// Floats of all vectors, lent or not.
  [[nodiscard]] std::size_t floats() const;

 private:
  struct Shelf;
  std::shared_ptr<Shelf> shelf_;
};

class VectorPool::Loan {
 public:
  Loan() = default;
  Loan(Loan&& other) noexcept;
  Loan& operator=(Loan&& other) noexcept;
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  ~Loan();

  /// As many floats as were asked for, aligned to core::kAlignment.
  [[nodiscard]] core::Span view() noexcept { return buffer_.view().first(size_); }

 private:
  friend class VectorPool;
  std::shared_ptr<Shelf> shelf_;
  core::Buffer buffer_;
  std::size_t size_ = 0;
};

}  // namespace troupe::exchange
