#include "service/api/job_json.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiment/settings.hpp"
#include "service/api/answers.hpp"
#include "transport/net/address.hpp"

namespace troupe::service {
namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

/// A member of the body. Errc::usage: it has another type.
core::Result<std::string> text_in(const Json& body, const char* key, const std::string& otherwise) {
  if (!body.contains(key) || body[key].is_null()) return otherwise;
  if (!body[key].is_string()) return core::fail(core::Errc::usage, fmt::format("{}: it must be a string", key));
  return body[key].get<std::string>();
}

core::Result<std::vector<std::string>> texts_in(const Json& body, const char* key) {
  std::vector<std::string> texts;
  if (!body.contains(key) || body[key].is_null()) return texts;
  const auto fits =
      body[key].is_array() && std::ranges::all_of(body[key], [](const Json& one) { return one.is_string(); });
  if (!fits) return core::fail(core::Errc::usage, fmt::format("{}: it must be a list of strings", key));
  for (const auto& one : body[key]) texts.push_back(one.get<std::string>());
  return texts;
}

/// Text and overrides as one text: a key with dots is a key of a section.
std::string toml_text(const ConfigText& text) {
  std::string lines;
  for (const auto& line : text.overrides) {
    const auto equals = line.find('=');
    lines += fmt::format("{} = {}\n", line.substr(0, equals), line.substr(equals + 1));
  }
  return lines + text.toml;
}

/// What the list shows of a configuration that is good.
void describe(const ConfigText& text, JobSpec& spec) {
  const auto config = core::Config::parse(experiment::schema(), text.toml, "config", text.overrides, "config");
  if (!config) return;
  const auto workers = config->value("cluster.workers");
  if (const auto* count = std::get_if<std::int64_t>(&workers)) spec.workers = *count;
  const auto name = config->value("run.name");
  if (const auto* given = std::get_if<std::string>(&name); given != nullptr && spec.name.empty()) spec.name = *given;
}

/// The configuration into `request.spec`, or what is wrong with it into `request.problems`. Errc::usage.
core::Result<void> take_config(const Json& body, JobRequest& request) {
  if (!body.contains("config") && !body.contains("toml")) return {};
  auto text = config_text(body);
  if (!text) return tl::unexpected(std::move(text.error()));
  request.spec.config = toml_text(*text);
  if (request.spec.kind == JobKind::grid) return {};
  if (!request.spec.command.empty())
    text->overrides.push_back("model.command=" + core::to_toml(core::Value{request.spec.command}));
  request.problems = check_config(*text).errors;
  if (request.problems.empty()) describe(*text, request.spec);
  return {};
}

/// "h1:4242,h2:4242"; whether they are there, the job finds out. Errc::config.
core::Result<void> check_nodes(std::string_view nodes) {
  std::set<std::string_view> seen;
  while (!nodes.empty()) {
    const auto one = nodes.substr(0, nodes.find(','));
    if (const auto at = transport::parse_host_port(one); !at)
      return core::fail(core::Errc::config, "nodes: " + at.error().message);
    if (!seen.insert(one).second) return core::fail(core::Errc::config, fmt::format("nodes: {} is there twice", one));
    nodes.remove_prefix(one.size());
    if (nodes == ",") return core::fail(core::Errc::config, "nodes: an address is missing behind the last comma");
    if (!nodes.empty()) nodes.remove_prefix(1);
  }
  return {};
}

}  // namespace

Json json_of(const Job& job) {
  return {{"id", job.id},
          {"name", job.spec.name},
          {"kind", name(job.spec.kind)},
          {"state", name(job.state)},
          {"priority", job.spec.priority},
          {"submitted", job.submitted},
          {"started", text_or_null(job.started)},
          {"ended", text_or_null(job.ended)},
          {"exit_code", job.exit_code ? Json(*job.exit_code) : Json(nullptr)},
          {"error", text_or_null(job.error)},
          {"run", text_or_null(job.run)},
          {"workers", job.spec.workers > 0 ? Json(job.spec.workers) : Json(nullptr)},
          {"nodes", text_or_null(job.spec.nodes)},
          {"user", job.spec.user}};
}

Json json_of(const JobDetails& details) {
  auto json = json_of(details.job);
  json["config"] = details.job.spec.config;
  json["command_line"] = details.command_line;
  auto history = Json::array();
  for (const auto& line : details.history) history.push_back({{"at", line.at}, {"event", line.event}});
  json["history"] = std::move(history);
  return json;
}

Json json_of(const NodeRow& node) {
  const auto of = [&](auto read) { return node.report ? Json(read(*node.report)) : Json(nullptr); };
  auto gpus = Json::array();
  auto runs = Json::array();
  if (node.report) {
    for (const auto& gpu : node.report->gpus)
      gpus.push_back({{"name", gpu.name},
                      {"load", gpu.load ? Json(*gpu.load) : Json(nullptr)},
                      {"memory", gpu.memory},
                      {"memory_free", gpu.memory_free}});
    for (const auto& run : node.report->runs) runs.push_back(run);
  }
  return {{"address", node.address},
          {"state", node.alive ? "alive" : "dead"},
          {"heard_s", node.heard_s ? Json(*node.heard_s) : Json(nullptr)},
          {"cores", of([](const NodeReport& report) { return report.cores; })},
          {"load", of([](const NodeReport& report) { return report.load; })},
          {"memory", of([](const NodeReport& report) { return report.memory; })},
          {"memory_free", of([](const NodeReport& report) { return report.memory_free; })},
          {"gpus", std::move(gpus)},
          {"runs", std::move(runs)},
          {"error", text_or_null(node.error)}};
}

core::Result<JobRequest> job_request(const Json& body, const std::string& user) {
  JobRequest request;
  auto& spec = request.spec;
  spec.user = user;
  const auto kind_name = text_in(body, "kind", "train");
  const auto kind = kind_name ? job_kind(*kind_name) : std::nullopt;
  if (!kind) return core::fail(core::Errc::usage, "kind: it must be train, launch or grid");
  spec.kind = *kind;
  auto given = text_in(body, "name", "");
  if (!given) return tl::unexpected(std::move(given.error()));
  spec.name = std::move(*given);
  auto command = texts_in(body, "command");
  if (!command) return tl::unexpected(std::move(command.error()));
  spec.command = std::move(*command);
  if (body.contains("nodes") && body["nodes"].is_array()) {
    const auto nodes = texts_in(body, "nodes");
    if (!nodes) return tl::unexpected(nodes.error());
    spec.nodes = fmt::format("{}", fmt::join(*nodes, ","));
  } else {
    auto nodes = text_in(body, "nodes", "");
    if (!nodes) return tl::unexpected(std::move(nodes.error()));
    spec.nodes = std::move(*nodes);
    std::erase(spec.nodes, ' ');  // "h1:4242, h2:4242"
  }
  if (body.contains("priority")) {
    const auto priority = whole_number(body["priority"]);
    if (!priority) return core::fail(core::Errc::usage, "priority: it must be a whole number of 64 bits");
    spec.priority = *priority;
  }
  if (body.contains("start")) {
    if (!body["start"].is_boolean()) return core::fail(core::Errc::usage, "start: it must be true or false");
    request.start = body["start"].get<bool>();
  }
  if (auto taken = take_config(body, request); !taken) return tl::unexpected(std::move(taken.error()));
  if (!request.problems.empty()) return request;
  if (spec.name.empty()) spec.name = std::string(name(spec.kind));
  if (auto fine = check_spec(spec); !fine) return tl::unexpected(std::move(fine.error()));
  if (auto fine = check_nodes(spec.nodes); !fine) return tl::unexpected(std::move(fine.error()));
  return request;
}

}  // namespace troupe::service
