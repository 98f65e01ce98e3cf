/// Holds an answer against its schema in service/openapi.json, as far as these tests need it: required keys, types, items, references. Pure.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace troupe::service {

/// What is wrong with `value`, with the place; empty: nothing.
[[nodiscard]] std::string misfit(const nlohmann::json& document, const nlohmann::json& schema,
                                 const nlohmann::json& value, const std::string& where = "$");

/// The same for the answer of `method` (lower case) and `path` as the document has them, with this status.
[[nodiscard]] std::string misfit_of_answer(const nlohmann::json& document, const std::string& method,
                                           const std::string& path, int status, const nlohmann::json& value);

}  // namespace troupe::service
