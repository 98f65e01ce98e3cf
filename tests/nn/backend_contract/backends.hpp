/// The backends that the contract suite runs over: every *_test.cpp of this folder tests what nn/backend.hpp promises, and nothing that
/// only one backend does. A new backend adds its line to backends.cpp and links its library; it passes all of them unchanged.
/// User programs (guest/) keep only a part of the contract: the suites that hold for them, too, name them with TROUPE_OVER_PROGRAMS.
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
/// The contract's nets as programs (programs.hpp), in numpy and in torch; the last sends gradients while backward goes on.
[[nodiscard]] const BackendKind& numpy_program();
[[nodiscard]] const BackendKind& torch_program();
[[nodiscard]] const BackendKind& overlapping_torch_program();
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

/// What GoogleTest adds to the names of the tests.
[[nodiscard]] std::string name_of_backend(const ::testing::TestParamInfo<BackendKind>& info);
template <class Param>
[[nodiscard]] std::string name_of_both(const ::testing::TestParamInfo<std::tuple<BackendKind, Param>>& info) {
  return std::get<0>(info.param).name + "_" + std::to_string(info.index);
}

}  // namespace troupe::nn::testing

/// Runs the tests of a BackendTest over every backend; those of a BackendTestOver also over `values`.
#define TROUPE_OVER_BACKENDS(suite)                                                                 \
  INSTANTIATE_TEST_SUITE_P(Backends, suite, ::testing::ValuesIn(::troupe::nn::testing::backends()), \
                           ::troupe::nn::testing::name_of_backend)
#define TROUPE_OVER_BACKENDS_AND(suite, ...)                                                                        \
  INSTANTIATE_TEST_SUITE_P(Backends, suite,                                                                         \
                           ::testing::Combine(::testing::ValuesIn(::troupe::nn::testing::backends()), __VA_ARGS__), \
                           [](const auto& info) { return ::troupe::nn::testing::name_of_both(info); })
/// The same over these programs.
#define TROUPE_OVER_PROGRAMS(suite, ...) \
  INSTANTIATE_TEST_SUITE_P(Programs, suite, ::testing::Values(__VA_ARGS__), ::troupe::nn::testing::name_of_backend)
#define TROUPE_OVER_PROGRAM_AND(name, suite, program, ...)                                           \
  INSTANTIATE_TEST_SUITE_P(name, suite, ::testing::Combine(::testing::Values(program), __VA_ARGS__), \
                           [](const auto& info) { return ::troupe::nn::testing::name_of_both(info); })
