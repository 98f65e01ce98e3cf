#include "tests/service/schema_check.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::service {
namespace {

using nlohmann::json;

bool has_type(const json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  return type == "null" && value.is_null();
}

bool has_one_of(const json& value, const json& types) {
  if (types.is_string()) return has_type(value, types);
  return std::ranges::any_of(types, [&](const json& type) { return has_type(value, type); });
}

}  // namespace

std::string misfit(const json& document, const json& schema, const json& value, const std::string& where) {
  if (schema.contains("$ref")) {
    const auto target = schema["$ref"].get<std::string>();
    return misfit(document, document.at(json::json_pointer(target.substr(1))), value, where);
  }
  if (schema.contains("oneOf")) {
    const auto fits =
        std::ranges::any_of(schema["oneOf"], [&](const json& one) { return misfit(document, one, value).empty(); });
    return fits ? std::string() : where + ": it fits none of the forms";
  }
  if (schema.contains("type") && !has_one_of(value, schema["type"]))
    return fmt::format("{}: {} is not {}", where, value.dump(), schema["type"].dump());
  if (schema.contains("enum") && std::ranges::find(schema["enum"], value) == schema["enum"].end())
    return fmt::format("{}: {} is none of {}", where, value.dump(), schema["enum"].dump());
  if (value.is_object()) {
    for (const auto& key : schema.value("required", json::array()))
      if (!value.contains(key.get<std::string>())) return fmt::format("{}: it has no {}", where, key.dump());
    for (const auto& [key, inner] : value.items()) {
      const auto properties = schema.value("properties", json::object());
      const auto* one = properties.contains(key)                  ? &properties[key]
                        : schema.contains("additionalProperties") ? &schema["additionalProperties"]
                                                                  : nullptr;
      if (one != nullptr)
        if (auto wrong = misfit(document, *one, inner, where + "." + key); !wrong.empty()) return wrong;
    }
  }
  if (value.is_array() && schema.contains("items"))
    for (std::size_t i = 0; i < value.size(); ++i)
      if (auto wrong = misfit(document, schema["items"], value[i], fmt::format("{}[{}]", where, i)); !wrong.empty())
        return wrong;
  return {};
}

std::string misfit_of_answer(const json& document, const std::string& method, const std::string& path, int status,
                             const json& value) {
  if (!document.at("paths").contains(path) || !document["paths"][path].contains(method))
    return fmt::format("the document has no {} {}", method, path);
  const auto& responses = document["paths"][path][method]["responses"];
  const auto key = std::to_string(status);
  const auto& response = responses.contains(key) ? responses[key] : document["components"]["responses"]["Error"];
  if (!response.contains("content") || !response["content"].contains("application/json"))
    return fmt::format("{} {} has no JSON answer with {}", method, path, status);
  return misfit(document, response["content"]["application/json"]["schema"], value);
}

}  // namespace troupe::service
