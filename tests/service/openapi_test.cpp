#include <algorithm>
#include <functional>
#include <set>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "service/assets/embedded.hpp"
#include "tests/service/served.hpp"

namespace troupe::service {
namespace {

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (auto& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

TEST(OpenapiTest, DocumentAndRoutesAreTheSame) {
  const auto document = nlohmann::json::parse(embedded_openapi());
  std::set<std::string> described, routed;
  for (const auto& [path, methods] : document.at("paths").items())
    for (const auto& [method, operation] : methods.items())
      described.insert(method + " " + path + " " + operation.at("x-role").get<std::string>());
  const Served served;
  for (const auto& route : served.service().router().routes()) {
    const auto& path = route.pattern;
    const bool is_top_file =
        path != "/" && path.find('/', 1) == std::string::npos && path.find('.') != std::string::npos;
    if (!is_top_file)  // the licences of the dashboard's libraries, where it was built
      routed.insert(in_lower_case(name(route.method)) + " " + path + " " + std::string(name(route.role)));
  }
  EXPECT_EQ(described, routed);
}

TEST(OpenapiTest, EveryReferenceAndParameterIsDefined) {
  const auto document = nlohmann::json::parse(embedded_openapi());
  EXPECT_EQ(document.at("openapi"), "3.1.0");
  const std::function<void(const nlohmann::json&)> walk = [&](const nlohmann::json& value) {
    if (value.is_object() && value.contains("$ref")) {
      EXPECT_TRUE(document.contains(nlohmann::json::json_pointer(value["$ref"].get<std::string>().substr(1))));
    }
    if (value.is_structured())
      for (const auto& inner : value) walk(inner);
  };
  walk(document);
  for (const auto& [path, methods] : document.at("paths").items())
    for (const auto& [method, operation] : methods.items()) {
      std::set<std::string> named;
      for (const auto& parameter : operation.value("parameters", nlohmann::json::array()))
        if (parameter.at("in") == "path") named.insert("{" + parameter.at("name").get<std::string>() + "}");
      std::size_t count = 0;
      for (const auto& one : named) count += path.find(one) != std::string::npos ? 1 : 0;
      EXPECT_EQ(count, static_cast<std::size_t>(std::ranges::count(path, '{'))) << method << " " << path;
    }
}

}  // namespace
}  // namespace troupe::service
