#include "guest/description.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace troupe::guest {
namespace {

using nlohmann::json;

json hello() {
  return {{"protocol", 1},
          {"token", "t"},
          {"tensors", json::array({json::array({"w", {3, 4}}), json::array({"none", {2, 0}}),
                                   json::array({"scale", json::array()})})},
          {"statistics", json::array({json::array({"mean", {4}})})},
          {"optimizer", "adam"},
          {"mirrors", true}};
}

TEST(GuestDescription, AHelloIsRead) {
  const auto said = parse_hello(hello().dump());
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->token, "t");
  EXPECT_EQ(said->tensors, (std::vector<nn::GivenTensor>{{"w", {3, 4}}, {"scale", {}}}));
  EXPECT_EQ(said->places, (std::vector{0, -1, 1}));
  EXPECT_EQ(said->statistics, (std::vector<nn::GivenTensor>{{"mean", {4}}}));
  EXPECT_TRUE(said->has_optimizer);
  EXPECT_TRUE(said->mirrors);
}

TEST(GuestDescription, WhatIsLeftOutIsNothing) {
  auto text = hello();
  text.erase("mirrors");
  text["optimizer"] = nullptr;
  text["unknown"] = {1, 2};
  const auto said = parse_hello(text.dump());
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_FALSE(said->has_optimizer);
  EXPECT_FALSE(said->mirrors);
}

void expect_refused(const json& text, std::string_view why) {
  const auto said = parse_hello(text.dump());
  ASSERT_FALSE(said) << text.dump();
  EXPECT_EQ(said.error().code, core::Errc::data);
  EXPECT_EQ(said.error().message.rfind("the guest's HELLO is not as the protocol says: ", 0), 0U)
      << said.error().message;
  EXPECT_NE(said.error().message.find(why), std::string::npos) << said.error().message;
  EXPECT_EQ(said.error().message.find("json.exception"), std::string::npos) << said.error().message;
}

TEST(GuestDescription, AnotherVersionIsRefused) {
  auto text = hello();
  text["protocol"] = 2;
  expect_refused(text, "protocol 2, and this program speaks 1");
  text["protocol"] = "1";
  expect_refused(text, "an integer is due");
}

TEST(GuestDescription, AHelloWithoutAKeyIsRefused) {
  for (const auto* key : {"protocol", "token", "tensors", "statistics"}) {
    auto text = hello();
    text.erase(key);
    expect_refused(text, key);
  }
}

TEST(GuestDescription, TensorsAreNamesAndShapes) {
  const auto with = [](const json& tensors) {
    auto text = hello();
    text["tensors"] = tensors;
    return text;
  };
  expect_refused(with("w"), "a list");
  expect_refused(with({{"w", {3}}}), "a list");  // an object
  expect_refused(with(json::array({"w"})), "");
  expect_refused(with(json::array({json::array({"w"})})), "");
  expect_refused(with(json::array({json::array({7, {3}})})), "must be string");
  expect_refused(with(json::array({json::array({"w", 3})})), "a shape is a list");
  expect_refused(with(json::array({json::array({"w", {1.5}})})), "an integer is due");
  expect_refused(with(json::array({json::array({"w", {true}})})), "an integer is due");
  expect_refused(with(json::array({json::array({"w", {1e300}})})), "an integer is due");
  expect_refused(with(json::array({json::array({"w", {18446744073709551615U}})})), "an integer is due");
  expect_refused(with(json::array({json::array({"", {3}})})), "a name has");
  expect_refused(with(json::array({json::array({"a\nb", {3}})})), "control characters");
  expect_refused(with(json::array({json::array({std::string(1001, 'x'), {3}})})), "1000 bytes");
}

TEST(GuestDescription, WhatIsNoObjectIsRefused) {
  for (const auto* text : {"", "[]", "7", "{", "\xff{}", "null", "{\"protocol\":1}}"}) {
    EXPECT_EQ(parse_hello(text).error().code, core::Errc::data) << text;
    EXPECT_EQ(parse_plan(text).error().code, core::Errc::data) << text;
  }
  EXPECT_FALSE(parse_hello(std::string(1 << 20, '[')));  // deep
}

TEST(GuestDescription, APlanIsRead) {
  const auto plan = parse_plan(R"({"samples": 100, "batch": 100, "epochs": 3})");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->samples, 100);
  EXPECT_EQ(plan->batch, 100);
  EXPECT_EQ(plan->epochs, 3);
  EXPECT_EQ(parse_plan(R"({"samples": 2147483647, "batch": 1})")->epochs, 1);
}

TEST(GuestDescription, APlanThatNobodyCanFollowIsRefused) {
  for (const auto* text : {R"({"samples": 0, "batch": 1})", R"({"samples": -1, "batch": 1})",
                           R"({"samples": 2147483648, "batch": 1})", R"({"samples": 10, "batch": 0})",
                           R"({"samples": 10, "batch": 11})", R"({"samples": 10, "batch": 5, "epochs": 0})",
                           R"({"samples": 10.5, "batch": 5})", R"({"samples": "10", "batch": 5})", R"({"samples": 10})",
                           R"({"batch": 5})", R"({"samples": 10, "batch": 5, "epochs": null})"})
    EXPECT_EQ(parse_plan(text).error().code, core::Errc::data) << text;
}

}  // namespace
}  // namespace troupe::guest
