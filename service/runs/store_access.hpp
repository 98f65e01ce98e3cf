/// The run store of the service: opened once, brought up to date when it is asked. Thread rule: one thread at a time, that of Where::store.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "store/run_store.hpp"

namespace troupe::service {

class StoreAccess {
 public:
  /// A look costs a stat() of each run: so the store may be this much behind the directories.
  static constexpr std::chrono::milliseconds kMostBehind{500};

  explicit StoreAccess(std::string directory) : directory_(std::move(directory)) {}

  /// The store, at most kMostBehind behind. Opens it, and opens it again when it was damaged. Valid until the next call. Errors: from
  /// RunStore::open().
  [[nodiscard]] core::Result<store::RunStore*> fresh();
  /// The next fresh() looks at the directories again: one of them was changed here.
  void expire() noexcept { looked_ = {}; }

 private:
  std::string directory_;
  std::optional<store::RunStore> store_;
  std::chrono::steady_clock::time_point looked_{};
};

}  // namespace troupe::service
