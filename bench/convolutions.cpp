// Convolutions of a model as its training step runs them, beside oneDNN's bare primitives: how much of the time of a convolution is the
// price of being part of a network (memory that other layers have used in between, layouts that neighbours share).
// Bare: the same shape alone in a loop on memory of its own, in the layouts that the primitive likes best, the faster of direct and
// Winograd's algorithm for each direction; the median of some runs. In the step: the breakdown of `troupe bench step`.
//
//   bench_convolutions [--model NAME…] [--batch N] [--precision fp32|bf16] [--seconds S] [--layers]
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <dnnl.hpp>
#include <fmt/format.h>

#include "core/clock.hpp"
#include "cpu/step_bench.hpp"
#include "nn/zoo/models.hpp"

namespace {

using namespace troupe;
using dnnl::memory;

struct Options {
  std::vector<std::string> models{"alexnet_torch", "googlenet_torch", "resnet18", "resnet50", "vgg16"};
  std::map<std::string, std::int64_t> batches{
      {"alexnet_torch", 32}, {"googlenet_torch", 16}, {"resnet18", 16}, {"resnet50", 8}, {"vgg16", 8}};
  std::int64_t batch = 0;  // 0: the model's, as in bench/networks.sh
  std::string precision = "fp32";
  double seconds = 1;
  bool layers = false;
};

/// One convolution of the model, with the sides' shapes.
struct Convolution {
  std::string name;
  nn::Conv2dLayer layer;
  nn::Shape input, output;
  bool data_gradient = false;
};

std::vector<Convolution> convolutions_of(const nn::Graph& graph) {
  std::vector<Convolution> result;
  for (const auto& node : graph.nodes())
    if (const auto* layer = std::get_if<nn::Conv2dLayer>(&node.layer))
      result.push_back(
          {node.name, *layer, graph.inputs_of(node).front(), node.output, graph.needs_gradient(node.inputs.front())});
  return result;
}

/// Times primitives on one engine. oneDNN throws dnnl::error where it has no such primitive.
class Bare {
 public:
  explicit Bare(memory::data_type type) : type_(type) {}

  /// Seconds of forward, weight gradient and, if there is one, data gradient.
  double measure(const Convolution& c, std::int64_t batch) {
    const auto groups = c.layer.groups;
    const auto any = memory::format_tag::any;
    const memory::desc source({batch, c.input.channels, c.input.height, c.input.width}, type_, any);
    const memory::desc target({batch, c.output.channels, c.output.height, c.output.width}, type_, any);
    const auto k = c.layer.kernel;
    const memory::dims dims = groups == 1
                                  ? memory::dims{c.output.channels, c.input.channels, k, k}
                                  : memory::dims{groups, c.output.channels / groups, c.input.channels / groups, k, k};
    const memory::desc weights(dims, type_, any);
    const memory::desc gradient(dims, memory::data_type::f32, any);
    const memory::desc bias({c.output.channels}, type_, memory::format_tag::x);
    const memory::desc bias_gradient({c.output.channels}, memory::data_type::f32, memory::format_tag::x);
    const memory::dims strides{c.layer.stride, c.layer.stride}, padding{c.layer.padding, c.layer.padding};
    double forward = 0, by_weights = 0, by_data = 0;
    for (const auto algorithm : {dnnl::algorithm::convolution_direct, dnnl::algorithm::convolution_winograd}) {
      try {
        const dnnl::convolution_forward::primitive_desc hint(
            c.layer.bias ? dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, algorithm, source,
                                                           weights, bias, target, strides, padding, padding)
                         : dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, algorithm, source,
                                                           weights, target, strides, padding, padding),
            engine_);
        keep_best(forward, time(dnnl::convolution_forward(hint), {{DNNL_ARG_SRC, hint.src_desc()},
                                                                  {DNNL_ARG_WEIGHTS, hint.weights_desc()},
                                                                  {DNNL_ARG_BIAS, hint.bias_desc()},
                                                                  {DNNL_ARG_DST, hint.dst_desc()}}));
        const dnnl::convolution_backward_weights::primitive_desc back(
            c.layer.bias ? dnnl::convolution_backward_weights::desc(algorithm, source, gradient, bias_gradient, target,
                                                                    strides, padding, padding)
                         : dnnl::convolution_backward_weights::desc(algorithm, source, gradient, target, strides,
                                                                    padding, padding),
            engine_, hint);
        keep_best(by_weights,
                  time(dnnl::convolution_backward_weights(back), {{DNNL_ARG_SRC, back.src_desc()},
                                                                  {DNNL_ARG_DIFF_WEIGHTS, back.diff_weights_desc()},
                                                                  {DNNL_ARG_DIFF_BIAS, back.diff_bias_desc()},
                                                                  {DNNL_ARG_DIFF_DST, back.diff_dst_desc()}}));
        if (!c.data_gradient) continue;
        const dnnl::convolution_backward_data::primitive_desc data(
            {algorithm, source, weights, target, strides, padding, padding}, engine_, hint);
        keep_best(by_data, time(dnnl::convolution_backward_data(data), {{DNNL_ARG_DIFF_SRC, data.diff_src_desc()},
                                                                        {DNNL_ARG_WEIGHTS, data.weights_desc()},
                                                                        {DNNL_ARG_DIFF_DST, data.diff_dst_desc()}}));
      } catch (const dnnl::error& error) {
        if (algorithm == dnnl::algorithm::convolution_direct) throw;  // Winograd's is for some shapes only
      }
    }
    return forward + by_weights + by_data;
  }

 private:
  static void keep_best(double& best, double seconds) { best = best == 0 ? seconds : std::min(best, seconds); }

  double time(const dnnl::primitive& primitive, const std::vector<std::pair<int, memory::desc>>& arguments) {
    std::unordered_map<int, memory> memories;
    for (const auto& [name, desc] : arguments) {
      if (desc.get_size() == 0) continue;  // no bias
      memory made(desc, engine_);
      std::memset(made.get_data_handle(), 0, desc.get_size());  // zeros: no slow denormals, no infinities
      memories.emplace(name, made);
    }
    const core::SteadyClock clock;
    std::vector<double> samples;
    const auto until = clock.now() + std::chrono::milliseconds(50);
    while (samples.size() < 4 || (clock.now() < until && samples.size() < 40)) {
      const auto began = clock.now();
      primitive.execute(stream_, memories);
      stream_.wait();
      samples.push_back(core::seconds(clock.now() - began));
    }
    samples.erase(samples.begin());  // pages and caches are warm after one
    std::ranges::nth_element(samples, samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2));
    return samples[samples.size() / 2];
  }

  memory::data_type type_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
};

core::Result<void> compare(const Options& options, const std::string& name) {
  const auto graph = nn::zoo_model(name);
  if (!graph) return tl::unexpected(graph.error());
  const auto known = options.batches.find(name);
  const std::int64_t batch = options.batch > 0 ? options.batch : known != options.batches.end() ? known->second : 16;
  const bool bf16 = options.precision == "bf16";
  const nn::CompileOptions compile{.batch = batch, .precision = nn::parse_precision(options.precision).value()};
  const auto step = cpu::run_step_bench(*graph, {.compile = compile, .seconds = options.seconds, .breakdown = true});
  if (!step) return tl::unexpected(step.error());
  std::map<std::string, double> in_step;  // seconds of the arithmetic, by layer
  for (const auto& operation : step->breakdown.operations)
    if (operation.part != cpu::StepPart::refresh && operation.flops > 0) in_step[operation.layer] += operation.seconds;

  Bare bare(bf16 ? memory::data_type::bf16 : memory::data_type::f32);
  double alone = 0, here = 0;
  for (const auto& convolution : convolutions_of(*graph)) {
    const double seconds = bare.measure(convolution, batch);
    alone += seconds;
    here += in_step[convolution.name];
    if (options.layers)
      fmt::print("  {:<24} bare {:9.3f} ms   in the step {:9.3f} ms   {:5.2f}\n", convolution.name, seconds * 1e3,
                 in_step[convolution.name] * 1e3, seconds / in_step[convolution.name]);
  }
  fmt::print(
      "{:<16} batch {:<4} {:<5} convolutions: bare {:9.2f} ms   in the step {:9.2f} ms   speed {:5.1f} % of bare\n",
      name, batch, options.precision, alone * 1e3, here * 1e3, 100 * alone / here);
  std::fflush(stdout);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Convolutions in a training step, beside oneDNN's bare primitives; one thread");
  app.add_option("--model", options.models, "models of `troupe models`")->capture_default_str();
  app.add_option("--batch", options.batch, "samples per step; default: as bench/networks.sh")
      ->check(CLI::Range(1, 4096));
  app.add_option("--precision", options.precision)->check(CLI::IsMember({"fp32", "bf16"}))->capture_default_str();
  app.add_option("--seconds", options.seconds, "length of a window of steps")->check(CLI::Range(0.01, 600.0));
  app.add_flag("--layers", options.layers, "a line for each layer, too");
  CLI11_PARSE(app, argc, argv);
  omp_set_num_threads(1);
  for (const auto& model : options.models)
    if (const auto compared = compare(options, model); !compared) {
      fmt::print(stderr, "{}: {}\n", model, compared.error().message);
      return core::exit_code(compared.error().code);
    }
  return 0;
}
