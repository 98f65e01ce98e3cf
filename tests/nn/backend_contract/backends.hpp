/// The backends that the contract suite runs over: every *_test.cpp of this folder tests what nn/backend.hpp promises, and nothing that
/// only one backend does. A new backend adds its line to backends.cpp and links its library; it passes all of them unchanged.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "nn/backend.hpp"

namespace troupe::nn::testing {

struct BackendKind {
  std::string name;  // of test cases
  std::unique_ptr<Backend> (*make)();
  std::string (*absence)() = nullptr;  // why this machine does not have it; empty or null: it has. Asked before make
};
[[nodiscard]] const std::vector<BackendKind>& backends();
/// Skips the running test, with the reason, if this machine does not have the backend.
void skip_where_absent(const BackendKind& kind);
/// Made once, for all tests of the process.
[[nodiscard]] Backend& backend_of(const BackendKind& kind);
void PrintTo(const BackendKind& kind, std::ostream* out);

/// A test over every backend. Skipped, with the reason, for one that this machine does not have.
class BackendTest : public ::testing::TestWithParam<BackendKind> {
 protected:
  BackendTest() { skip_where_absent(GetParam()); }
  [[nodiscard]] static Backend& backend() { return backend_of(GetParam()); }
};

/// A test over every backend and other parameters.
template <class Param>
class BackendTestOver : public ::testing::TestWithParam<std::tuple<BackendKind, Param>> {
 protected:
  using Base = ::testing::TestWithParam<std::tuple<BackendKind, Param>>;
  BackendTestOver() { skip_where_absent(std::get<0>(Base::GetParam())); }
  [[nodiscard]] static Backend& backend() { return backend_of(std::get<0>(Base::GetParam())); }
  [[nodiscard]] static const Param& param() { return std::get<1>(Base::GetParam()); }
};

}  // namespace troupe::nn::testing

/// Runs the tests of a BackendTest over every backend; those of a BackendTestOver also over `values`.
#define TROUPE_OVER_BACKENDS(suite)                                                                 \
  INSTANTIATE_TEST_SUITE_P(Backends, suite, ::testing::ValuesIn(::troupe::nn::testing::backends()), \
                           [](const auto& info) { return info.param.name; })
#define TROUPE_OVER_BACKENDS_AND(suite, ...)                                                                    \
  INSTANTIATE_TEST_SUITE_P(                                                                                     \
      Backends, suite, ::testing::Combine(::testing::ValuesIn(::troupe::nn::testing::backends()), __VA_ARGS__), \
      [](const auto& info) { return std::get<0>(info.param).name + "_" + std::to_string(info.index); })
