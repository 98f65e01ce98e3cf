#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <numeric>
#include <string_view>
#include <thread>
#include <vector>

#include <caf/config.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <oneapi/dnnl/dnnl.h>

#include "apps/command.hpp"
#include "apps/devices.hpp"
#include "apps/output.hpp"
#include "core/affinity/assignment.hpp"
#include "core/affinity/binding.hpp"
#include "core/devices/management_library.hpp"
#include "core/text/plural.hpp"
#include "data/hdf5/array_library.hpp"
#include "gpu/device/load.hpp"
#include "gpu/nccl/library.hpp"
#include "transport/common/module.hpp"
#include "transport/fabric/fabric_module.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::apps {
namespace {

using Json = nlohmann::ordered_json;

/// The instructions that oneDNN's kernels use on this machine.
std::string_view onednn_isa() {
  switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41: return "sse41";
    case dnnl_cpu_isa_avx: return "avx";
    case dnnl_cpu_isa_avx2: return "avx2";
    case dnnl_cpu_isa_avx2_vnni: return "avx2_vnni";
    case dnnl_cpu_isa_avx512_mic: return "avx512_mic";
    case dnnl_cpu_isa_avx512_mic_4ops: return "avx512_mic_4ops";
    case dnnl_cpu_isa_avx512_core: return "avx512_core";
    case dnnl_cpu_isa_avx512_core_vnni: return "avx512_core_vnni";
    case dnnl_cpu_isa_avx512_core_bf16: return "avx512_core_bf16";
    case dnnl_cpu_isa_avx512_core_amx: return "avx512_core_amx";
    default: return "unknown";
  }
}

std::string onednn_version() {
  const auto* version = dnnl_version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return "unknown";
}

/// The endpoints whose libraries are loaded at their first use, by name.
std::vector<transport::EndpointInfo> modules() {
  std::vector<transport::EndpointInfo> found;
  for (const auto& endpoint : transport::endpoint_infos())
    if (!endpoint.library.title.empty()) found.push_back(endpoint);
  std::ranges::sort(found, {}, &transport::EndpointInfo::name);
  return found;
}

Json module(std::string_view absent) {
  return absent.empty() ? Json{{"built", true}} : Json{{"built", false}, {"absent", absent}};
}

/// Loads the endpoint's module as a run would: its libraries may not be here.
Json endpoint_module(const transport::EndpointInfo& endpoint, std::string_view absent) {
  auto found = module(absent);
  if (!absent.empty()) return found;
  const auto symbols = endpoint.library.global_symbols ? transport::Symbols::global : transport::Symbols::local;
  const auto loaded = transport::load_fabric(std::string(endpoint.name), symbols);
  found["usable"] = loaded.has_value();
  if (!loaded) found["why"] = loaded.error().message;
  return found;
}

std::string endpoint_report(const transport::EndpointInfo& endpoint, const Json& found) {
  if (!found["built"].get<bool>()) return "not in this build: " + found["absent"].get<std::string>();
  if (!found["usable"].get<bool>()) return found["why"].get<std::string>();
  return fmt::format("endpoint {} is loaded when it is used", endpoint.name);
}

/// Of each endpoint, whether messages may be in a GPU's memory, or why they are copied through the host's.
Json device_messages() {
  Json found = Json::object();
  for (const auto& endpoint : transport::endpoint_infos()) {
    const auto support = transport::device_support(endpoint);
    Json one{{"takes", nullptr}};
    if (support.takes) one["takes"] = *support.takes;
    if (!support.why_not.empty()) one["why"] = support.why_not;
    if (support.takes == true && endpoint.reach == transport::Reach::hosts) {  // it may use less between hosts
      const auto far = transport::device_support(endpoint, transport::ucx_transports_between_hosts());
      one["between_hosts"] = far.takes == true;
      if (!far.why_not.empty()) one["why"] = far.why_not;
    }
    found[std::string(endpoint.name)] = std::move(one);
  }
  return found;
}

std::string device_messages_report(const Json& found) {
  std::string lines;
  for (const auto& [name, one] : found.items()) {
    const auto& takes = one["takes"];
    lines += fmt::format("{:<8} {}: {}", lines.empty() ? "messages" : "", name,
                         takes.is_null()     ? "not known whether it takes a GPU's memory"
                         : takes.get<bool>() ? one.value("between_hosts", true) ? "takes a GPU's memory"
                                                                                : "takes a GPU's memory within a host"
                                             : "a GPU's memory is staged");
    lines += one.contains("why") ? fmt::format(": {}\n", one["why"].get<std::string>()) : "\n";
  }
  return lines;
}

/// The GPU backend and what it needs. "why" has a line for each thing that is missing.
Json cuda() {
  const auto survey = gpu::devices();
  Json found{{"built", survey.built}, {"devices", survey.devices.size()}};
  const auto staging = transport::open_module("cuda");
  found["staging"] = staging && !survey.devices.empty();
  found["driver"] = survey.driver;
  found["libraries"] = survey.libraries;
  found["names"] = Json::array();
  found["peers"] = Json::array();
  for (const auto& device : survey.devices) {
    found["names"].push_back(fmt::format("{}, {:.1f} GiB, compute capability {}.{}", device.name,
                                         static_cast<double>(device.memory) / (1ULL << 30), device.compute_major,
                                         device.compute_minor));
    found["peers"].push_back(device.peers);
  }
  std::vector<int> all(survey.devices.size());
  std::iota(all.begin(), all.end(), 0);
  found["peers_reach"] = reach_each_other(survey.devices, all);
  found["why"] = Json::array();
  found["use"] = Json::array();
  const auto states = core::gpu_states();
  if (!states && !survey.driver.empty())  // without a driver there are no GPUs, and that is said
    found["why"].push_back("the use of GPUs is not known: " + states.error().message);
  for (const auto& gpu : states.value_or(std::vector<core::GpuState>())) {
    Json told{{"name", gpu.name}, {"uuid", gpu.uuid}, {"load", nullptr}};
    if (gpu.load) told["load"] = *gpu.load / 100.0;
    told["memory_bytes"] = gpu.memory_bytes;
    told["memory_used_bytes"] = gpu.memory_used_bytes;
    told["text"] = fmt::format("{} ({}): {}", gpu.name, gpu.uuid, core::to_text(gpu));
    found["use"].push_back(std::move(told));
  }
  if (!staging && survey.built)
    found["why"].push_back("endpoints cannot stage device memory: " + staging.error().message);
  for (const auto* missing : {&survey.no_module, &survey.no_devices, &survey.no_libraries, &survey.no_fusions})
    if (!missing->empty()) found["why"].push_back(*missing);
  return found;
}

std::string cuda_report(const Json& found) {
  std::string lines;
  const auto line = [&](const std::string& text) {
    lines += fmt::format("{:<8} {}\n", lines.empty() ? "CUDA" : "", text);
  };
  if (!found["built"].get<bool>()) line("no GPU backend:");
  if (const auto driver = found["driver"].get<std::string>(); !driver.empty())
    line(fmt::format("the driver supports CUDA {}", driver));
  if (const auto libraries = found["libraries"].get<std::string>(); !libraries.empty()) line(libraries);
  for (std::size_t device = 0; device < found["names"].size(); ++device)
    line(fmt::format("cuda:{}: {}", device, found["names"][device].get<std::string>()));
  for (const auto& gpu : found["use"]) line(gpu["text"].get<std::string>());
  for (const auto& why : found["why"]) line(why.get<std::string>());
  if (found["names"].size() > 1)
    line(
        found["peers_reach"].get<bool>()
            ? "they reach each other's memory: members of one process exchange there"
            : "not all reach each other's memory: members of one process on several of them exchange through the host");
  if (found["staging"].get<bool>()) line("endpoints can stage device memory through page-locked host memory");
  return lines;
}

/// Loads NCCL as a run with exchange.algorithm = "nccl" would.
Json nccl() {
  const auto library = gpu::NcclLibrary::open();
  if (!library) return {{"usable", false}, {"why", library.error().message}};
  return {{"usable", true}, {"version", (*library)->version()}, {"path", (*library)->path()}};
}

std::string nccl_report(const Json& found) {
  if (!found["usable"].get<bool>()) return fmt::format("NCCL     {}\n", found["why"].get<std::string>());
  return fmt::format("NCCL     {}, for exchange.algorithm = \"nccl\": {}\n", found["version"].get<std::string>(),
                     found["path"].get<std::string>());
}

struct Workers {
  unsigned count = 2;
  unsigned threads = 1;
};

Json hdf5() {
  const auto library = data::array_library();
  if (!library) return module(library.error().message);
  return {{"built", true}, {"version", (*library)->version()}};
}

/// The cores of this machine, and those that the workers of a run would have.
Json pinning(const Workers& workers) {
  const auto usable = core::usable_cpus();
  Json found{{"usable_cpus", usable}};
  const auto& machine = core::this_machine();
  if (!machine) {
    found["absent"] = machine.error().message;
    return found;
  }
  found["machine"] = core::describe(*machine);
  for (const auto& core : machine->cores)
    found["cores"].push_back({{"cpus", core.cpus}, {"cache", core.cache}, {"memory_node", core.node}});
  const auto assignment =
      core::assign(*machine, usable, std::vector<unsigned>(workers.count, workers.threads), workers.count);
  found["workers"] = Json::array();
  for (const auto& cpus : assignment.workers)
    found["workers"].push_back({{"cpus", cpus}, {"memory_nodes", core::memory_nodes(*machine, cpus)}});
  if (!assignment.reason.empty()) found["not_pinned"] = assignment.reason;
  return found;
}

/// As lines of the plain report.
std::string pinning_report(const Workers& workers) {
  const auto usable = core::usable_cpus();
  const auto& machine = core::this_machine();
  if (!machine) return fmt::format("pinning  none: {}\n", machine.error().message);
  std::string lines = fmt::format("cores    {}; this process may use {} {}\n", core::describe(*machine),
                                  core::noun(usable.size(), "cpu"), core::to_text(usable));
  const auto assignment =
      core::assign(*machine, usable, std::vector<unsigned>(workers.count, workers.threads), workers.count);
  const auto asked =
      fmt::format("{} with {}", core::counted(workers.count, "worker"), core::counted(workers.threads, "thread"));
  if (!assignment.reason.empty()) return lines + fmt::format("pinning  {}: none, too few cpus\n", asked);
  lines += fmt::format("pinning  {}:\n", asked);
  for (std::size_t worker = 0; worker < assignment.workers.size(); ++worker)
    lines += fmt::format("         {}\n", core::describe(*machine, worker, assignment.workers[worker]));
  if (!assignment.helpers.empty())
    lines += fmt::format("         decoding on {} {}\n", core::noun(assignment.helpers.size(), "cpu"),
                         core::to_text(assignment.helpers));
  return lines;
}

Json findings(const Workers& workers) {
  // CAF_VERSION is MMmmpp in decimal.
  const auto caf = fmt::format("{}.{}.{}", CAF_VERSION / 10000, CAF_VERSION / 100 % 100, CAF_VERSION % 100);
  const auto memory =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
  Json found{
      {"version", TROUPE_VERSION}, {"cpu", cpu_model()}, {"threads", std::thread::hardware_concurrency()},
      {"memory_bytes", memory},    {"cuda", cuda()},     {"nccl", nccl()},
  };
  const auto registry = transport::built_in_endpoints();
  for (const auto& endpoint : modules())
    found[std::string(endpoint.name)] = endpoint_module(endpoint, registry.absence(endpoint.name));
  found["device_messages"] = device_messages();
  found["pinning"] = pinning(workers);
  found["onednn"] = {{"built", true}, {"version", onednn_version()}, {"isa", onednn_isa()}};
  found["caf"] = {{"version", caf}};
  found["hdf5"] = hdf5();
  return found;
}

std::string report(const Json& found, const Workers& workers) {
  const auto text = [&](const char* key) { return found[key].get<std::string>(); };
  std::string lines = fmt::format("troupe   {}\n", text("version"));
  lines += fmt::format("cpu      {}, {} threads for this process\n", text("cpu"), found["threads"].get<unsigned>());
  lines += fmt::format("memory   {:.1f} GiB\n",
                       static_cast<double>(found["memory_bytes"].get<std::uint64_t>()) / (1ULL << 30));
  lines += pinning_report(workers);
  lines += fmt::format("oneDNN   {}, using {}\n", found["onednn"]["version"].get<std::string>(),
                       found["onednn"]["isa"].get<std::string>());
  lines += fmt::format("CAF      {}\n", found["caf"]["version"].get<std::string>());
  lines += found["hdf5"]["built"].get<bool>()
               ? fmt::format("HDF5     {}, for data.name = \"hickle\"\n", found["hdf5"]["version"].get<std::string>())
               : fmt::format("HDF5     {}\n", found["hdf5"]["absent"].get<std::string>());
  lines += cuda_report(found["cuda"]);
  lines += nccl_report(found["nccl"]);
  for (const auto& endpoint : modules())
    lines +=
        fmt::format("{:<8} {}\n", endpoint.library.title, endpoint_report(endpoint, found[std::string(endpoint.name)]));
  return lines + device_messages_report(found["device_messages"]);
}

Action declare_doctor(CLI::App& app) {
  const auto json = std::make_shared<bool>(false);
  const auto workers = std::make_shared<Workers>();
  app.add_option("--workers", workers->count, "show the cores of so many workers of a run on this machine")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--threads", workers->threads, "threads of each of them, as cluster.threads_per_worker")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_flag("--json", *json, "one line of JSON");
  return [json, workers] {
    const auto found = findings(*workers);
    return print(*json ? found.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n" : report(found, *workers));
  };
}

}  // namespace

Command doctor() {
  return {.name = "doctor",
          .summary = "say what this build and this machine can do",
          .examples =
              "  troupe doctor\n"
              "  troupe doctor --workers 4 --threads 2\n"
              "  troupe doctor --json\n",
          .declare = declare_doctor,
          .ranks = Ranks::each};
}

}  // namespace troupe::apps
