#include "tests/nn/backend_contract/programs.hpp"

#include <cstdlib>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "guest/backend.hpp"
#include "tests/folder.hpp"

namespace troupe::nn::testing {
namespace {

using nlohmann::json;

/// The first Python that has numpy and `module`.
std::optional<std::string> python_with(const std::string& module) {
  for (const char* name : {"python3", "/usr/bin/python3"})
    if (std::system(fmt::format("timeout 60 {} -c 'import numpy, {}' >/dev/null 2>&1", name, module).c_str()) == 0)
      return name;
  return std::nullopt;
}
const std::optional<std::string>& python_of(const std::string& kind) {
  static std::map<std::string, std::optional<std::string>> found;
  if (!found.contains(kind)) found[kind] = python_with(kind);
  return found[kind];
}

json extents(const Shape& shape) { return {shape.channels, shape.height, shape.width}; }

struct Described {
  json operator()(const LinearLayer& l) const { return {{"type", "linear"}, {"outputs", l.outputs}}; }
  json operator()(const Conv2dLayer& l) const {
    return {{"type", "conv2d"},     {"outputs", l.outputs}, {"kernel", l.kernel}, {"stride", l.stride},
            {"padding", l.padding}, {"groups", l.groups},   {"bias", l.bias}};
  }
  json operator()(const PoolLayer& l) const {
    return {{"type", l.kind == PoolKind::max ? "max_pool" : "average_pool"},
            {"kernel", l.kernel},
            {"stride", l.stride},
            {"padding", l.padding},
            {"ceil", l.ceil}};
  }
  json operator()(const ActivationLayer& l) const { return {{"type", to_string(l.kind)}}; }
  json operator()(const FlattenLayer&) const { return {{"type", "flatten"}}; }
  json operator()(const LrnLayer& l) const {
    return {{"type", "lrn"}, {"size", l.size}, {"alpha", l.alpha}, {"beta", l.beta}, {"k", l.k}};
  }
  json operator()(const BatchNormLayer& l) const {
    return {{"type", "batch_norm"}, {"epsilon", l.epsilon}, {"momentum", l.momentum}};
  }
  json operator()(const AdaptiveAveragePoolLayer& l) const {
    return {{"type", "adaptive_average_pool"}, {"size", l.size}};
  }
  json operator()(const AddLayer&) const { return {{"type", "add"}}; }
  json operator()(const ConcatLayer&) const { return {{"type", "concat"}}; }
  /// A program draws its own random numbers: its dropout is not the contract's.
  json operator()(const DropoutLayer&) const { throw std::invalid_argument("no program of the contract has dropout"); }
};

std::string described(const Graph& graph, std::int64_t batch) {
  auto nodes = json::array(), heads = json::array();
  for (const Node& node : graph.nodes()) {
    auto layer = std::visit(Described{}, node.layer);
    layer["name"] = node.name;
    layer["inputs"] = node.inputs;
    layer["output"] = extents(node.output);
    nodes.push_back(std::move(layer));
  }
  for (const Head& head : graph.heads()) heads.push_back({{"node", head.node}, {"weight", head.weight}});
  return json{{"batch", batch},
              {"input", extents(graph.input())},
              {"nodes", nodes},
              {"heads", heads},
              {"loss", graph.loss() == Loss::squared_error ? "squared_error" : "softmax_cross_entropy"}}
      .dump();
}

/// What a replica and its program need, in the order of their making.
struct Place {
  Place(const Graph& net, std::int64_t batch)
      : graph(net), samples(static_cast<std::size_t>(batch)), file(folder.file("batch"), std::ios::binary) {
    std::iota(samples.begin(), samples.end(), 0);
    folder.write("net.json", described(net, batch));
    const std::vector<float> images(samples.size() * static_cast<std::size_t>(net.input().size()));
    write({.images = images, .labels = samples});
  }
  /// The program maps the file: it reads what is written here last.
  void write(const Batch& batch) {
    file.seekp(0);
    file.write(reinterpret_cast<const char*>(batch.images.data()),
               static_cast<std::streamsize>(batch.images.size_bytes()));
    file.write(reinterpret_cast<const char*>(batch.labels.data()),
               static_cast<std::streamsize>(batch.labels.size_bytes()));
    file.flush();
  }

  tests::Folder folder;
  Graph graph;
  std::optional<Graph> program;  // what the guest's backend is given
  std::vector<std::int32_t> samples;
  std::ofstream file;
  std::unique_ptr<guest::GuestBackend> backend;
};

class ProgramReplica final : public Replica {
 public:
  ProgramReplica(std::unique_ptr<Place> place, std::unique_ptr<Replica> guest)
      : place_(std::move(place)), guest_(std::move(guest)) {}

  [[nodiscard]] const Graph& graph() const noexcept override { return place_->graph; }
  [[nodiscard]] std::int64_t batch() const noexcept override { return guest_->batch(); }
  [[nodiscard]] const std::shared_ptr<const Layout>& layout() const noexcept override { return guest_->layout(); }
  [[nodiscard]] core::Span parameters() noexcept override { return guest_->parameters(); }
  [[nodiscard]] core::Span gradients() noexcept override { return guest_->gradients(); }
  [[nodiscard]] core::Span statistics() noexcept override { return guest_->statistics(); }
  void parameters_written() noexcept override { guest_->parameters_written(); }
  [[nodiscard]] std::uint64_t parameters_version() const noexcept override { return guest_->parameters_version(); }
  [[nodiscard]] const std::vector<Bucket>& buckets() const noexcept override { return guest_->buckets(); }
  [[nodiscard]] core::Result<StepResult> step(const Batch& batch,
                                              const std::function<void(int)>& on_bucket_ready) override {
    return guest_->step(numbers_of(batch), on_bucket_ready);
  }
  void apply(const core::OptimizerStep& step, core::OptimizerState state) override { guest_->apply(step, state); }
  [[nodiscard]] const core::Error* failure() const noexcept override { return guest_->failure(); }
  [[nodiscard]] bool owns_optimizer() const noexcept override { return guest_->owns_optimizer(); }
  [[nodiscard]] core::Result<StepResult> evaluate(const Batch& batch) override {
    return guest_->evaluate(numbers_of(batch));
  }
  [[nodiscard]] std::span<const float> outputs() const noexcept override { return guest_->outputs(); }
  [[nodiscard]] const Plan& plan() const noexcept override { return guest_->plan(); }
  [[nodiscard]] std::size_t workspace_bytes() const noexcept override { return guest_->workspace_bytes(); }

 private:
  /// The batch as numbers of samples, which are the rows of the file.
  [[nodiscard]] Batch numbers_of(Batch batch) {
    place_->write(batch);
    batch.images = {};
    batch.labels = place_->samples;
    return batch;
  }
  std::unique_ptr<Place> place_;
  std::unique_ptr<Replica> guest_;  // ends first
};

class ProgramBackend final : public Backend {
 public:
  ProgramBackend(std::string name, std::string kind, std::vector<std::string> words)
      : name_(std::move(name)), kind_(std::move(kind)), words_(std::move(words)) {}
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] Capabilities capabilities() const override {
    return {.precisions = {Precision::fp32}, .own_arenas = true};
  }
  [[nodiscard]] core::Allocator& arenas(const CompileOptions&) noexcept override { return memory_; }
  [[nodiscard]] const core::Kernels& kernels() const noexcept override { return core::host_kernels(); }
  [[nodiscard]] core::Result<std::unique_ptr<Replica>> compile(const Graph& graph,
                                                               const CompileOptions& options) override {
    std::vector<GivenTensor> parameters, statistics;
    for (const auto& parameter : graph.parameters()) parameters.push_back({parameter.name, parameter.shape});
    for (const auto& statistic : graph.statistics()) statistics.push_back({statistic.name, {statistic.channels}});
    auto place = std::make_unique<Place>(graph, options.batch);
    auto program = Graph::of_program(graph.name(), parameters, statistics);
    if (!program) return tl::unexpected(std::move(program.error()));
    place->program = std::move(*program);
    std::vector<std::string> command{*python_of(kind_), "-B",
                                     TROUPE_SOURCE_DIR "/tests/nn/backend_contract/programs/program.py", kind_,
                                     place->folder.path()};
    command.insert(command.end(), words_.begin(), words_.end());
    place->backend = guest::make_backend({.command = std::move(command)});
    auto guest = place->backend->compile(*place->program, options);
    if (!guest) return tl::unexpected(std::move(guest.error()));
    return std::make_unique<ProgramReplica>(std::move(place), std::move(*guest));
  }

 private:
  const std::string name_, kind_;
  const std::vector<std::string> words_;
  core::HostAllocator memory_;  // of the tests' own vectors: a guest's are in memory that it maps
};

}  // namespace

std::unique_ptr<Backend> make_program_backend(std::string name, std::string kind, std::vector<std::string> words) {
  return std::make_unique<ProgramBackend>(std::move(name), std::move(kind), std::move(words));
}

std::string absence_of_program(const std::string& kind) {
  return python_of(kind) ? "" : fmt::format("no Python with {} (Debian: python3-{})", kind, kind);
}

}  // namespace troupe::nn::testing
