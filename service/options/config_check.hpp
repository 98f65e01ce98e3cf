/// Whether a configuration is good, without training and without starting anything: who may only look may check. Thread rule: pure, but for
/// the files that a configuration names, which are not opened.
#pragma once

#include <string>
#include <vector>

#include "experiment/settings.hpp"
#include "service/http/message.hpp"

namespace troupe::service {

/// The body of POST /check and POST /jobs: `{"config": {"strategy.name": …}}` or `{"toml": "…"}`.
struct ConfigText {
  std::string toml;
  std::vector<std::string> overrides;  // "key=value"
};
/// Errc::usage: neither, or values that no option has.
[[nodiscard]] core::Result<ConfigText> config_text(const Json& body);

struct ConfigProblem {
  std::string key;  // empty: not of one key
  std::string message;
};

struct ConfigVerdict {
  std::vector<ConfigProblem> errors{};
  std::vector<std::string> warnings{};
  std::string toml{};  // resolved; empty with errors
};

/// Syntax, keys, values, bounds, the sections against each other, whether the strategy fits the members, and the model's shapes where the
/// data's are known without opening them. The model of a program (model.command) is not asked: nothing is started. Devices are not opened.
[[nodiscard]] ConfigVerdict check_config(const ConfigText& text);

/// `{ok, errors, warnings, config}`.
[[nodiscard]] Json json_of(const ConfigVerdict& verdict);

}  // namespace troupe::service
