#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/arguments/checks.hpp"
#include "apps/command.hpp"
#include "apps/output.hpp"
#include "apps/progress_line.hpp"
#include "gpu/device/host_device.hpp"
#include "gpu/device/load.hpp"
#include "gpu/timing/step_times.hpp"
#include "gpu/timing/vector_rates.hpp"
#include "nn/zoo/models.hpp"

namespace troupe::apps {
namespace {

struct BenchDeviceArguments {
  std::string device = "cuda";
  std::size_t parameters = 60'965'224;
  int rounds = 11;
  std::string model = "alexnet_torch";
  std::int64_t batch = 64;
  std::string precision = "bf16";
  int steps = 50;
  bool json = false;
};

core::Result<std::shared_ptr<gpu::Device>> device_of(const std::string& name) {
  if (name == "cuda") return gpu::load_device(0);
  return std::make_shared<gpu::HostDevice>();
}

core::Result<void> run_bench_device(const BenchDeviceArguments& arguments) {
  const auto device = device_of(arguments.device);
  if (!device) return tl::unexpected(device.error());
  const auto graph = nn::zoo_model(arguments.model);
  if (!graph) return tl::unexpected(graph.error());
  ProgressLine progress("measuring");
  const auto rates = gpu::vector_rates(**device, arguments.parameters, arguments.rounds);
  if (!rates) return tl::unexpected(rates.error());
  const nn::CompileOptions options{.batch = arguments.batch,
                                   .precision = nn::parse_precision(arguments.precision).value()};
  const auto times = gpu::step_times(*device, *graph, options, arguments.steps);
  progress.clear();
  if (!times) return tl::unexpected(times.error());

  const double idle_us = 1e6 * times->device.idle / (times->device_steps - 1);  // it lies between two steps
  const double copy_us = 1e6 * times->device.copy / times->device_steps;
  const auto& info = (*device)->info();
  if (arguments.json) {
    nlohmann::ordered_json json{
        {"device", info.name}, {"libraries", info.libraries}, {"parameters", arguments.parameters}};
    json["vectors"] = nlohmann::ordered_json::array();
    for (const auto& rate : *rates)
      json["vectors"].push_back({{"kernel", rate.name}, {"gb_per_s", rate.gb_per_s}, {"of_a_copy", rate.of_a_copy}});
    json["step"] = {{"model", arguments.model},
                    {"batch", arguments.batch},
                    {"precision", arguments.precision},
                    {"ms_per_step", times->ms_per_step},
                    {"captured", times->is_captured},
                    {"operations_per_step", static_cast<double>(times->device.operations) / times->device_steps},
                    {"idle_us_per_step", idle_us},
                    {"host_copy_us_per_step", copy_us}};
    return print(json.dump() + "\n");
  }
  std::string text = fmt::format("{}, {}; vectors of {} floats\n", info.name, info.libraries, arguments.parameters);
  for (const auto& rate : *rates)
    text += fmt::format("{:<24} {:>9.1f} GB/s {:>6.2f} of a copy\n", rate.name, rate.gb_per_s, rate.of_a_copy);
  text += fmt::format(
      "{}, batch {}, {}: {:.3f} ms per step; with events, the device waits {:.1f} us of a step for the "
      "host, and {:.1f} us for copies from and to it{}\n",
      arguments.model, arguments.batch, arguments.precision, times->ms_per_step, idle_us, copy_us,
      times->is_captured ? "" : "; its passes could not be captured as graphs");
  return print(text);
}

Action declare_bench_device(CLI::App& app) {
  const auto a = std::make_shared<BenchDeviceArguments>();
  app.add_option("--device", a->device,
                 "cuda: the first one of the driver; cuda_on_host: this program's stand-in, for tests")
      ->check(word_of({"cuda", "cuda_on_host"}))
      ->capture_default_str();
  app.add_option("--parameters", a->parameters, "floats of each vector")
      ->check(whole_between(1, 0x1p36))
      ->capture_default_str();
  app.add_option("--rounds", a->rounds, "of each kernel; the median counts")
      ->check(whole_between(1, 1'000'000))
      ->capture_default_str();
  std::vector<std::string> models;
  for (const auto& entry : nn::model_zoo()) models.push_back(entry.name);
  app.add_option("--model", a->model, "of the steps: a model of `troupe models`")
      ->check(word_of(models))
      ->capture_default_str();
  app.add_option("--batch", a->batch, "samples per step")->check(whole_between(1, 1'000'000))->capture_default_str();
  app.add_option("--precision", a->precision, "of forward and backward")
      ->check(word_of({"fp32", "tf32", "bf16", "fp16"}))
      ->capture_default_str();
  app.add_option("--steps", a->steps, "to measure")->check(whole_between(1, 1'000'000))->capture_default_str();
  app.add_flag("--json", a->json, "one line of JSON");
  return [a] { return run_bench_device(*a); };
}

}  // namespace

Command bench_device() {
  return {.name = "device",
          .summary = "an accelerator: its vector kernels beside a copy, and how long it waits for the host in a step",
          .examples =
              "  troupe bench device\n"
              "  troupe bench device --model resnet50 --batch 256 --json\n",
          .declare = declare_bench_device};
}

}  // namespace troupe::apps
