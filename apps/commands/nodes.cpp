#include "actors/deployment/nodes.hpp"

#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/arguments/network.hpp"
#include "apps/command.hpp"
#include "apps/output.hpp"
#include "apps/progress_line.hpp"
#include "core/devices/management_library.hpp"
#include "core/text/plural.hpp"

namespace troupe::apps {
namespace {

struct NodesArguments {
  std::string nodes;
  security::TlsFiles tls;
  bool json = false;
};

constexpr double kGiB = 1024.0 * 1024 * 1024;

nlohmann::ordered_json to_json(const actors::GpuFacts& gpu) {
  nlohmann::ordered_json told{{"name", gpu.name}, {"uuid", gpu.uuid}, {"load", nullptr}};
  if (gpu.load >= 0) told["load"] = gpu.load / 100.0;
  told["memory_bytes"] = gpu.memory_bytes;
  told["memory_used_bytes"] = gpu.memory_used_bytes;
  return told;
}

std::string to_text(const actors::GpuFacts& gpu) {
  core::GpuState state{gpu.name, gpu.uuid, {}, gpu.memory_bytes, gpu.memory_used_bytes};
  if (gpu.load >= 0) state.load = static_cast<std::uint32_t>(gpu.load);
  return fmt::format("{}: {}", gpu.name, core::to_text(state));
}

nlohmann::ordered_json to_json(const std::string& name, const actors::NodeFacts& facts,
                               const std::vector<actors::GpuFacts>& gpus) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& gpu : gpus) list.push_back(to_json(gpu));
  return {{"node", name},
          {"up", true},
          {"host", facts.host},
          {"version", facts.version},
          {"up_s", facts.up_s},
          {"cores", facts.cores},
          {"load", facts.load},
          {"cpu", facts.cpu},
          {"memory_bytes", facts.memory_bytes},
          {"memory_free_bytes", facts.memory_free_bytes},
          {"resident_bytes", facts.resident_bytes},
          {"gpus", facts.gpus},
          {"gpu_use", std::move(list)},
          {"endpoints", facts.endpoints},
          {"members", facts.members}};
}

std::string to_text(const std::string& name, const actors::NodeFacts& facts,
                    const std::vector<actors::GpuFacts>& gpus) {
  auto text = fmt::format("{}  {}, troupe {}, up {:.0f} s: {}, load {:.2f}, {:.1f} of {:.1f} GiB free, {}\n", name,
                          facts.host, facts.version, facts.up_s, core::counted(facts.cores, "core"), facts.load,
                          static_cast<double>(facts.memory_free_bytes) / kGiB,
                          static_cast<double>(facts.memory_bytes) / kGiB, core::counted(facts.gpus, "GPU"));
  text += fmt::format("    this process: {:.2f} cores, {:.2f} GiB\n", facts.cpu,
                      static_cast<double>(facts.resident_bytes) / kGiB);
  for (const auto& gpu : gpus) text += fmt::format("    {}\n", to_text(gpu));
  for (const auto& member : facts.members) text += fmt::format("    {}\n", member);
  return text;
}

/// The error without the node's name at its beginning.
std::string reason(const std::string& name, const core::Error& error) {
  const auto prefix = name + ": ";
  return error.message.starts_with(prefix) ? error.message.substr(prefix.size()) : error.message;
}

core::Result<void> run_nodes(const NodesArguments& arguments) {
  const auto names = actors::parse_nodes(arguments.nodes, "NODES");
  if (!names) return tl::unexpected(names.error());
  auto tls = find_tls(arguments.tls);
  if (!tls) return tl::unexpected(tls.error());
  actors::NetworkOptions options;
  options.tls = std::move(*tls);
  actors::NetworkConfig config(options);
  caf::actor_system system(config);
  auto network = actors::Network::create(system, options);
  if (!network) return tl::unexpected(network.error());
  // Reports an unreachable node, and still lists the others.
  std::vector<core::Error> failed;
  for (const auto& name : *names) {
    ProgressLine progress("asking " + name);
    std::vector<actors::GpuFacts> gpus;
    const auto facts = actors::parse_host_port(name)
                           .and_then([&](const actors::HostPort& at) {
                             return (*network)->connect<actors::NodeActor>(at, std::chrono::seconds(10));
                           })
                           .and_then([&](const actors::NodeActor& node) {
                             auto found = actors::facts_of(system, node, name);
                             // A node of another version may not know the question.
                             if (found && found->version == actors::spoken_version(TROUPE_VERSION))
                               if (auto report = actors::gpus_of(system, node, name)) gpus = std::move(report->gpus);
                             return found;
                           });
    progress.clear();
    if (!facts) failed.push_back(facts.error());
    std::string text;
    if (arguments.json)
      text = (facts ? to_json(name, *facts, gpus)
                    : nlohmann::ordered_json{{"node", name}, {"up", false}, {"error", facts.error().message}})
                 .dump() +
             "\n";
    else if (facts)
      text = to_text(name, *facts, gpus);
    else if (names->size() > 1)  // the error below says it of a single node
      text = fmt::format("{}  {}\n", name, reason(name, facts.error()));
    if (auto printed = print(text); !printed) return printed;
  }
  if (failed.empty()) return {};
  if (names->size() == 1) return tl::unexpected(failed.front());
  return core::fail(failed.front().code, fmt::format("{} of {} nodes did not answer", failed.size(), names->size()));
}

Action declare_nodes(CLI::App& app) {
  const auto arguments = std::make_shared<NodesArguments>();
  app.add_option("NODES", arguments->nodes, "the nodes to ask")->type_name("HOST:PORT,…")->required();
  add_tls(app, arguments->tls);
  app.add_flag("--json", arguments->json, "a line of JSON per node");
  return [arguments] { return run_nodes(*arguments); };
}

}  // namespace

Command nodes() {
  return {.name = "nodes",
          .summary = "what nodes have, what they run and how they are doing",
          .examples =
              "  troupe nodes 127.0.0.1:4242\n"
              "  troupe nodes 10.0.0.11:4242,10.0.0.12:4242 --ca certs/ca.pem --cert certs/me.pem --key certs/me.key\n",
          .declare = declare_nodes};
}

}  // namespace troupe::apps
