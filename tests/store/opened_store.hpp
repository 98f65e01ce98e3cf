/// A store after a look, and what is in it, for tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "store/run_store.hpp"
#include "tests/folder.hpp"

namespace troupe::store {

inline RunStore opened(const tests::Folder& runs) {
  auto store = RunStore::open(runs.path());
  EXPECT_TRUE(store.has_value()) << store.error().message;
  return std::move(*store);
}

/// The first column of the statement's rows.
inline std::vector<std::string> rows(RunStore& store, const std::string& statement) {
  std::vector<std::string> found;
  for (Statement all(store.database(), statement); all.next();) found.push_back(all.text(0));
  EXPECT_TRUE(store.database().check().has_value());
  return found;
}

constexpr const char* kKinds = "SELECT path || ' ' || kind FROM directories ORDER BY 1";

}  // namespace troupe::store
