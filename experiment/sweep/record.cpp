#include "experiment/sweep/record.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace troupe::sweep {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string_view name_of(Kind kind) {
  return kind == Kind::real ? "real" : kind == Kind::integer ? "integer" : "choice";
}

/// TOML of a number, a truth value or a list of them is JSON, too; any other text is a string.
OrderedJson value_json(const std::string& toml) {
  auto json = OrderedJson::parse(toml, nullptr, false);
  return json.is_discarded() ? OrderedJson(toml) : json;
}

OrderedJson parameter_json(const Parameter& p) {
  OrderedJson json{{"key", p.key}, {"kind", name_of(p.kind)}};
  if (p.kind == Kind::choice) {
    json["choices"] = OrderedJson::array();
    for (const auto& choice : p.choices) json["choices"].push_back(value_json(choice));
  } else {
    json["low"] = p.low;
    json["high"] = p.high;
    json["log"] = p.log;
  }
  if (p.depends_on) {
    json["depends_on"] = *p.depends_on;
    json["when"] = p.when;
  }
  return json;
}

OrderedJson trial_json(const TrialRecord& trial) {
  OrderedJson json{{"trial", trial.trial}, {"name", trial.name}, {"settings", OrderedJson::object()}};
  for (const auto& [key, value] : trial.settings) json["settings"][key] = value_json(value);
  json["scores"] = OrderedJson::array();
  for (const auto& score : trial.scores) json["scores"].push_back(score ? OrderedJson(*score) : OrderedJson(nullptr));
  json["training_to"] = trial.training_to ? OrderedJson(*trial.training_to) : OrderedJson(nullptr);
  json["status"] = trial.status;
  json["directory"] = trial.directory.empty() ? OrderedJson(nullptr) : OrderedJson(trial.directory);
  json["scored_s"] = trial.scored_s;
  json["diverged_after"] = trial.diverged_after ? OrderedJson(*trial.diverged_after) : OrderedJson(nullptr);
  return json;
}

Parameter parameter_of(const OrderedJson& json) {
  Parameter p;
  p.key = json.at("key").get<std::string>();
  const auto kind = json.at("kind").get<std::string>();
  p.kind = kind == "real" ? Kind::real : kind == "integer" ? Kind::integer : Kind::choice;
  if (p.kind == Kind::choice) {
    for (const auto& choice : json.at("choices")) p.choices.push_back(choice.dump());
  } else {
    p.low = json.at("low").get<double>();
    p.high = json.at("high").get<double>();
    p.log = json.at("log").get<bool>();
  }
  if (json.contains("depends_on")) {
    p.depends_on = json.at("depends_on").get<std::size_t>();
    p.when = json.at("when").get<std::vector<std::size_t>>();
  }
  return p;
}

TrialRecord trial_of(const OrderedJson& json) {
  TrialRecord trial;
  trial.trial = json.at("trial").get<std::size_t>();
  trial.name = json.at("name").get<std::string>();
  for (const auto& [key, value] : json.at("settings").items()) trial.settings.emplace_back(key, value.dump());
  for (const auto& score : json.at("scores"))
    trial.scores.push_back(score.is_null() ? std::nullopt : std::optional(score.get<double>()));
  if (!json.at("training_to").is_null()) trial.training_to = json.at("training_to").get<std::int64_t>();
  trial.status = json.at("status").get<std::string>();
  if (!json.at("directory").is_null()) trial.directory = json.at("directory").get<std::string>();
  trial.scored_s = json.at("scored_s").get<std::vector<double>>();
  if (const auto epochs = json.find("diverged_after"); epochs != json.end() && !epochs->is_null())
    trial.diverged_after = epochs->get<double>();
  return trial;
}

Record record_of(const OrderedJson& json) {
  Record record;
  record.file = json.at("sweep").get<std::string>();
  record.metric = json.at("metric").get<std::string>();
  record.higher_is_better = json.at("goal").get<std::string>() == "max";
  record.method = json.at("method").get<std::string>();
  record.schedule = json.at("schedule").get<std::string>();
  record.rungs = json.at("rungs").get<std::vector<std::int64_t>>();
  record.most_trials = json.at("most_runs").is_null() ? 0 : json.at("most_runs").get<std::size_t>();
  // Records of before 2026-11-27 have none.
  if (const auto most = json.find("most_epochs"); most != json.end() && !most->is_null())
    record.most_epochs = most->get<std::int64_t>();
  record.most_hours = json.at("most_hours").is_null() ? 0 : json.at("most_hours").get<double>();
  record.elapsed_s = json.at("elapsed_s").get<double>();
  record.state = json.at("state").get<std::string>();
  for (const auto& parameter : json.at("parameters")) record.parameters.push_back(parameter_of(parameter));
  for (const auto& trial : json.at("trials")) record.trials.push_back(trial_of(trial));
  record.ranking = json.at("ranking").get<std::vector<std::size_t>>();
  if (!json.at("importance").is_null()) record.importance = json.at("importance").get<std::vector<double>>();
  return record;
}

/// What readers index with.
bool is_sound(const Record& record) {
  for (std::size_t i = 0; i < record.parameters.size(); ++i) {
    const auto& p = record.parameters[i];
    if (p.kind == Kind::choice ? p.choices.empty() : !(p.low <= p.high) || (p.log && !(p.low > 0))) return false;
    if (p.depends_on && (*p.depends_on >= i || record.parameters[*p.depends_on].kind != Kind::choice)) return false;
  }
  for (std::size_t i = 0; i < record.trials.size(); ++i)
    if (record.trials[i].trial != i || record.trials[i].scores.size() > record.rungs.size() ||
        record.trials[i].scored_s.size() != record.trials[i].scores.size())
      return false;
  const auto known = [&](std::size_t trial) { return trial < record.trials.size(); };
  return !record.rungs.empty() && std::ranges::all_of(record.ranking, known) &&
         (record.importance.empty() || record.importance.size() == record.parameters.size());
}

}  // namespace

OrderedJson to_json(const Record& record) {
  OrderedJson json{{"sweep", record.file},
                   {"metric", record.metric},
                   {"goal", record.higher_is_better ? "max" : "min"},
                   {"method", record.method},
                   {"schedule", record.schedule},
                   {"rungs", record.rungs},
                   {"most_runs", record.most_trials > 0 ? OrderedJson(record.most_trials) : OrderedJson(nullptr)},
                   {"most_epochs", record.most_epochs > 0 ? OrderedJson(record.most_epochs) : OrderedJson(nullptr)},
                   {"most_hours", record.most_hours > 0 ? OrderedJson(record.most_hours) : OrderedJson(nullptr)},
                   {"elapsed_s", record.elapsed_s},
                   {"state", record.state},
                   {"epochs_trained", epochs_trained(record)},
                   {"parameters", OrderedJson::array()},
                   {"trials", OrderedJson::array()},
                   {"ranking", record.ranking},
                   {"importance", nullptr}};
  for (const auto& p : record.parameters) json["parameters"].push_back(parameter_json(p));
  for (const auto& trial : record.trials) json["trials"].push_back(trial_json(trial));
  if (!record.importance.empty()) json["importance"] = record.importance;
  return json;
}

core::Result<Record> parse_record(const std::string& text, const std::string& where) {
  try {
    auto record = record_of(OrderedJson::parse(text));
    if (is_sound(record)) return record;
  } catch (const nlohmann::json::exception&) {  // the same as a record that is not sound
  }
  return core::fail(core::Errc::corrupt,
                    fmt::format("{}: not a sweep's record; `troupe grid` writes it anew from sweep.jsonl", where));
}

core::Result<std::optional<Record>> read_record(const std::string& directory) {
  const auto path = directory + "/" + kRecordFile;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::optional<Record>{};
  std::ostringstream text;
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (file) text << file.rdbuf();
  if (!file) return tl::unexpected(core::from_errno(errno != 0 ? errno : EIO, "read", path));
  return parse_record(text.str(), path).map([](Record record) { return std::optional(std::move(record)); });
}

double epochs_trained(const Record& record) {
  std::int64_t reached = 0;
  double diverged = 0;
  for (const auto& trial : record.trials) {
    if (trial.diverged_after)
      diverged += *trial.diverged_after;
    else if (!trial.scores.empty())
      reached += record.rungs[trial.scores.size() - 1];
  }
  return static_cast<double>(reached) + diverged;
}

std::vector<Scored> history(const Record& record) {
  std::vector<Scored> all;
  for (const auto& trial : record.trials)
    for (std::size_t rung = 0; rung < trial.scores.size(); ++rung) {
      const bool ends_it = trial.diverged_after && rung + 1 == trial.scores.size();
      const auto reached = ends_it ? *trial.diverged_after : static_cast<double>(record.rungs[rung]);
      all.push_back({.t = trial.scored_s[rung],
                     .epochs = reached - (rung > 0 ? static_cast<double>(record.rungs[rung - 1]) : 0),
                     .trial = trial.trial,
                     .rung = rung,
                     .score = trial.scores[rung],
                     .best = std::nullopt});
    }
  std::ranges::stable_sort(all, {}, &Scored::t);
  double epochs = 0;
  std::optional<double> best;
  for (auto& one : all) {
    epochs = one.epochs += epochs;
    if (one.score && (!best || (record.higher_is_better ? *one.score > *best : *one.score < *best))) best = one.score;
    one.best = best;
  }
  return all;
}

std::optional<double> score_of(const TrialRecord& trial) {
  return trial.scores.empty() ? std::nullopt : trial.scores.back();
}

}  // namespace troupe::sweep
