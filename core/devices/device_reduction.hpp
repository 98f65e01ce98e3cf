/// Sums over the devices of several processes, by a library that itself moves and adds what is in their memory: NCCL (gpu/nccl/reduction.hpp). The
/// library chooses the order of a sum.
///
/// All members begin their sums in the same order and with equal lengths: only the order identifies a sum. Thread-safe, except the destructor,
/// which aborts.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "core/error.hpp"
#include "core/kernels.hpp"

namespace troupe::core {

/// Greatest length of a group's name, in characters.
inline constexpr std::size_t kMostGroupName = 512;

class DeviceReduction {
 public:
  /// Called exactly once, by a thread of the library's user or within the call. Must not block, throw or call the object.
  using Done = std::function<void(Result<void>)>;

  virtual ~DeviceReduction() = default;

  /// The name of a new group, printable, for one member to make and all to join. Errc::io.
  [[nodiscard]] virtual Result<std::string> make_group() = 0;
  /// Ends when all `members` members have joined, this one as `rank`, or by abort(). Once. Errc::config: no name of a group,
  /// or the second call; Errc::io.
  virtual void join(const std::string& group, std::size_t rank, std::size_t members, Done done) = 0;
  /// Members of the group; 0 before it is joined.
  [[nodiscard]] virtual std::size_t members() const noexcept = 0;

  /// vector ← Σ of all members' vectors. The caller's work on the vector is complete; it is lent until `done`. Ends when every member has begun it, or
  /// by abort(). REQUIRES that the group was joined.
  virtual void sum(Span vector, Done done) = 0;

  /// A member is lost: what is under way ends with `why`, and later sums fail with it. Idempotent.
  virtual void abort(const Error& why) = 0;
  /// Errc::io: the library has failed since; nothing under way will end by itself. Cheap.
  [[nodiscard]] virtual Result<void> check() = 0;
};

}  // namespace troupe::core
