#include "core/optimizers/optimizers.hpp"

#include <set>
#include <stdexcept>
#include <utility>

#include <gtest/gtest.h>

namespace troupe::core {
namespace {

using Names = std::vector<std::string>;

/// The text of an enumerator, as the compiler writes template arguments: "(troupe::core::OptimizerKind)6" if the enumeration has none
/// of this value.
template <OptimizerKind kKind>
std::string_view enumerator() {
  const std::string_view text = __PRETTY_FUNCTION__;
  const auto begin = text.find("kKind = ") + 8;
  return text.substr(begin, text.find_first_of(";]", begin) - begin);
}

template <std::size_t... kValue>
std::vector<std::string_view> enumerators(std::index_sequence<kValue...>) {
  return {enumerator<static_cast<OptimizerKind>(kValue)>()...};
}

TEST(Optimizers, TheTableCoversEveryKind) {
  const auto texts = enumerators(std::make_index_sequence<64>{});
  for (std::size_t value = 0; value < texts.size(); ++value) {
    if (texts[value].starts_with('(')) {
      EXPECT_GE(value, kOptimizerKinds) << "a row without a kind";
    } else {
      ASSERT_LT(value, kOptimizerKinds) << texts[value] << " has no row";
      EXPECT_TRUE(texts[value].ends_with("::" + std::string(kOptimizers[value].name))) << texts[value];
    }
  }
}

TEST(Optimizers, RowsAreFoundByKindAndByName) {
  std::set<std::string_view> names;
  for (const auto& row : kOptimizers) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(&optimizer_info(row.kind), &row);
    if (row.variant)
      EXPECT_THROW((void)optimizer_info(row.name), std::invalid_argument) << row.name;
    else
      EXPECT_EQ(&optimizer_info(row.name), &row);
  }
}

TEST(Optimizers, AnUnknownNameIsRefusedWithTheNamesThereAre) {
  for (const char* const unknown : {"lion", "", "SGD", "none"}) {
    try {
      (void)optimizer_info(std::string_view(unknown));
      ADD_FAILURE() << unknown;
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(std::string(error.what()),
                std::string("no optimizer is called \"") + unknown +
                    "\": there are sgd, momentum, nesterov, rmsprop, adagrad, adam, adamw, adadelta");
    }
  }
  EXPECT_THROW((void)optimizer_info(static_cast<OptimizerKind>(kOptimizerKinds)), std::out_of_range);
}

/// What options and help said before there was a table.
TEST(Optimizers, PropertiesAreThoseOfTheFormulas) {
  EXPECT_EQ(optimizer_names(),
            (Names{"sgd", "momentum", "nesterov", "rmsprop", "adagrad", "adam", "adamw", "adadelta"}));
  EXPECT_EQ(optimizer_names(&OptimizerInfo::velocity), (Names{"momentum", "nesterov"}));
  EXPECT_EQ(optimizer_names(&OptimizerInfo::momentum), (Names{"momentum", "nesterov", "adam", "adamw"}));
  EXPECT_EQ(optimizer_names(&OptimizerInfo::decay), (Names{"rmsprop", "adam", "adamw", "adadelta"}));
  EXPECT_EQ(optimizer_names(&OptimizerInfo::epsilon), (Names{"rmsprop", "adagrad", "adam", "adamw", "adadelta"}));
  EXPECT_EQ(optimizer_names(&OptimizerInfo::bias_correction), (Names{"adam", "adamw"}));
  EXPECT_EQ(optimizer_names(&OptimizerInfo::on_servers),
            (Names{"sgd", "momentum", "rmsprop", "adagrad", "adam", "adamw", "adadelta"}));
  EXPECT_EQ(optimizer_names(&OptimizerInfo::outer), (Names{"sgd", "nesterov"}));
  for (const auto& row : kOptimizers) {
    const bool two =
        row.kind == OptimizerKind::adam || row.kind == OptimizerKind::adamw || row.kind == OptimizerKind::adadelta;
    EXPECT_EQ(row.state_slots, row.kind == OptimizerKind::sgd ? 0 : two ? 2 : 1) << row.name;
    EXPECT_EQ(row.outer_lr > 0, row.outer) << row.name;
    EXPECT_TRUE(row.on_servers || !row.searched) << row.name << " would be drawn where it is refused";
  }
}

}  // namespace
}  // namespace troupe::core
