#include "nn/zoo/models.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text/nearest.hpp"
#include "nn/zoo/given_tensor.hpp"
#include "nn/zoo/network.hpp"

namespace troupe::nn {
namespace {

constexpr Shape kMnist{1, 28, 28};
constexpr Shape kCifarCrop{3, 28, 28};  // of 32x32
constexpr Shape kImageNet{3, 224, 224};
constexpr std::int64_t kTenClasses = 10;
constexpr std::int64_t kImageNetClasses = 1000;
constexpr double kCautious = 0.4;       // of the usual learning rate
constexpr double kMostUnits = 1 << 24;  // of a layer, as in Graph::sequential

Network chain(std::vector<Layer> layers) {
  Network net;
  for (auto& layer : layers) net.nodes.push_back({.layer = std::move(layer)});
  return net;
}

Network mlp(const NetworkOptions& from) {
  const ActivationLayer hidden = from.activation_or(Activation::sigmoid);
  std::vector<Layer> layers;
  for (const auto width : from.widths) {
    layers.emplace_back(LinearLayer{width, from.weight});
    layers.emplace_back(hidden);
  }
  layers.emplace_back(LinearLayer{from.outputs, from.weight});
  if (from.loss == Loss::squared_error) layers.emplace_back(ActivationLayer{Activation::sigmoid});
  return chain(std::move(layers));
}

Network lenet(const NetworkOptions& from) {
  const PoolLayer halve{PoolKind::max, 2, 2, 0};
  return chain({Conv2dLayer{20, 5, 1, 0, from.weight}, halve, Conv2dLayer{50, 5, 1, 0, from.weight}, halve,
                LinearLayer{500, from.weight}, from.activation_or(Activation::relu),
                LinearLayer{from.outputs, from.weight}});
}

Network cifar(const NetworkOptions& from) {
  const PoolLayer halve{PoolKind::max, 2, 2, 0};
  const ActivationLayer f = from.activation_or(Activation::relu);
  return chain({Conv2dLayer{64, 5, 1, 0, from.weight}, f, halve, Conv2dLayer{128, 5, 1, 0, from.weight}, f, halve,
                Conv2dLayer{64, 3, 1, 0, from.weight}, f, LinearLayer{256, from.weight}, f, DropoutLayer{0.5},
                LinearLayer{from.outputs, from.weight}});
}

/// One line per model: name, layers, the input and classes it is listed with, description.
struct ModelRow {
  std::string name;
  Network (*network)(const NetworkOptions&);
  InitialiserKind weights;  // if model.initialiser is "auto"
  Shape input;
  std::int64_t classes;
  std::string description;
  double rate_share = kCautious;  // as in models.hpp
};
const std::vector<ModelRow>& model_rows() {
  static const std::vector<ModelRow> list{
      {"alexnet",
       alexnet,
       InitialiserKind::he,
       {3, 227, 227},
       kImageNetClasses,
       "the paper's AlexNet with two groups and LRN, for 227x227 (Krizhevsky et al. 2012)"},
      {"alexnet_torch", alexnet_torch, InitialiserKind::he, kImageNet, kImageNetClasses,
       "torchvision's AlexNet, without groups and LRN (Krizhevsky 2014)"},
      {"cifar", cifar, InitialiserKind::he, kCifarCrop, kTenClasses,
       "three convolutions and two fully connected layers, 64-128-64-256, dropout; for 28x28 crops of colour images"},
      {"googlenet", googlenet, InitialiserKind::xavier, kImageNet, kImageNetClasses,
       "the paper's GoogLeNet with LRN and two auxiliary losses (Szegedy et al. 2014)"},
      {"googlenet_torch", googlenet_torch, InitialiserKind::he, kImageNet, kImageNetClasses,
       "torchvision's GoogLeNet, with batch normalisation and two auxiliary losses"},
      {"lenet", lenet, InitialiserKind::xavier, kMnist, kTenClasses,
       "two convolutions and two fully connected layers, 20-50-500 (LeCun et al. 1998)", 1},
      {"mlp", mlp, InitialiserKind::xavier, kMnist, kTenClasses,
       "fully connected, any widths and activation; 784-100-100-10 with sigmoids", 1},
      {"resnet18", resnet18, InitialiserKind::he, kImageNet, kImageNetClasses, "residual network (He et al. 2016)"},
      {"resnet50", resnet50, InitialiserKind::he, kImageNet, kImageNetClasses,
       "residual network with bottlenecks (He et al. 2016)"},
      {"vgg16", vgg16, InitialiserKind::he, kImageNet, kImageNetClasses,
       "thirteen convolutions (Simonyan & Zisserman 2015)"},
      {"vgg19", vgg19, InitialiserKind::he, kImageNet, kImageNetClasses,
       "sixteen convolutions (Simonyan & Zisserman 2015)"},
      {"wrn_28_4",
       wrn_28_4,
       InitialiserKind::he,
       {3, 32, 32},
       kTenClasses,
       "wide residual network for small images (Zagoruyko & Komodakis 2016)"}};
  return list;
}

/// Null: no model of the zoo has this name.
const ModelRow* find_model(const std::string& name) {
  const auto row = std::ranges::find(model_rows(), name, &ModelRow::name);
  return row == model_rows().end() ? nullptr : &*row;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& row : model_rows()) names.push_back(row.name);
  return names;
}

core::Result<LayerList> choose_layers(const ModelConfig& config, const NetworkOptions& from, const Where& where) {
  const auto refuse = [&](const std::string& why) {
    return core::fail(core::Errc::config, placed(where, "model.name", why));
  };
  const auto* const row = find_model(config.name);
  const auto names = model_names();
  if (!config.layers.json.empty()) {
    if (row != nullptr)
      return refuse(fmt::format(
          "model.name = \"{}\" is a model of its own: leave out model.layers or choose another name", config.name));
    return parse_layers(config.layers, from.weight, where);
  }
  if (config.name.empty())
    return refuse(fmt::format("model.name is not set: one of {}, or give model.layers", fmt::join(names, " | ")));
  if (row == nullptr)
    return refuse(fmt::format("model.name = \"{}\" is unknown{}: one of {}, or give model.layers", config.name,
                              core::nearest_hint(config.name, names, core::Quotes::yes), fmt::join(names, " | ")));
  LayerList list{.nodes = {},
                 .auxiliary = {},
                 .places = {.model = placed(where, "model.name", fmt::format("model \"{}\"", config.name))}};
  auto net = row->network(from);
  list.nodes = std::move(net.nodes);
  list.auxiliary = std::move(net.auxiliary);
  return list;
}

core::Result<Graph> program_of(const ModelConfig& config, const Where& where) {
  const auto refuse = [&](const char* key, const std::string& why) {
    return core::fail(core::Errc::config, placed(where, key, why));
  };
  if (!config.layers.json.empty())
    return refuse("model.command", "model.command and model.layers are two models: leave one of them out");
  std::vector<GivenTensor> parameters, statistics;
  for (const auto& [key, texts, into] : {std::tuple{"model.tensors", &config.tensors, &parameters},
                                         {"model.statistics", &config.statistics, &statistics}})
    for (const auto& text : *texts) {
      auto tensor = parse_given_tensor(text);
      if (!tensor) return refuse(key, fmt::format("{}: \"{}\": {}", key, text, tensor.error().message));
      into->push_back(std::move(*tensor));
    }
  auto graph = Graph::of_program(config.name.empty() ? "program" : config.name, parameters, statistics);
  if (!graph) return refuse("model.tensors", graph.error().message);
  return graph;
}

}  // namespace

const core::Table<ModelConfig>& model_table() {
  static const core::Table<ModelConfig> table{
      "model",
      {{"name",
        &ModelConfig::name,
        {fmt::format("{}, or any with layers", fmt::join(model_names(), " | ")), {}},
        "the model; must be set unless layers is"},
       {"widths", &ModelConfig::widths, core::between(1, kMostUnits), "mlp: units of each hidden layer"},
       {"activation", &ModelConfig::activation, core::one_of({"auto", "relu", "sigmoid", "tanh"}),
        "of hidden layers; auto: sigmoid for mlp, relu for the others"},
       {"loss", &ModelConfig::loss, core::one_of({"softmax_cross_entropy", "squared_error"}),
        "what training minimises; squared_error gives mlp sigmoid outputs"},
       {"classes", &ModelConfig::classes, core::between(0, kMostUnits),
        "outputs of a model with a name of its own; 0: as many as the data has classes"},
       {"initialiser", &ModelConfig::initialiser, core::one_of({"auto", "normal", "uniform", "xavier", "he"}),
        "how weights start; biases start at 0; auto: xavier for mlp, lenet, googlenet and a model of your own, else "
        "he"},
       {"init_scale", &ModelConfig::init_scale, core::between(0, core::kMostFloat),
        "normal: deviation; uniform: bound"},
       {"zero_init_residual", &ModelConfig::zero_init_residual, core::anything(),
        "resnet18, resnet50: the last batch normalisation of a block starts at 0, so the block as the identity"},
       {"layers", &ModelConfig::layers, core::anything(),
        "a model of your own: a list of tables like {type = \"linear\", outputs = 10}"},
       {"command", &ModelConfig::command, core::anything(),
        "a program of your own that computes the model, with its arguments: [\"python3\", \"train.py\"]; it calls "
        "troupe.join, and brings its model, its data and its optimizer"},
       {"tensors", &ModelConfig::tensors, core::anything(),
        "command: its parameters, \"fc1.weight 128x64\"; the program tells them when a run begins"},
       {"statistics", &ModelConfig::statistics, core::anything(), "command: its running statistics, in the same way"},
       {"program", &ModelConfig::program, core::anything(),
        "command: the program's fingerprint, as it told it: another one is refused; empty: any with the same tensors"},
       {"start_s", &ModelConfig::start_s, core::between(1, 540),
        "command: longest time from its start to its call of run.batches, in seconds"},
       {"silence_s", &ModelConfig::silence_s, core::between(1, 1e6),
        "command: longest time of one step or one evaluation, in seconds, after which the program is lost; also of "
        "what comes after the last batch, where it is at least 20 and the program is killed"},
       {"parallel", &ModelConfig::parallel, core::one_of({"none", "neurons"}),
        "how a worker's threads share a step; neurons: each of cluster.threads_per_worker ranks computes its part of "
        "every linear layer's neurons, for models of linear layers and activations"},
       {"overlap", &ModelConfig::overlap, core::anything(),
        "with parallel = \"neurons\": a layer's weight gradient is computed while its error is summed over the ranks; "
        "the same numbers"}}};
  return table;
}

const std::vector<ZooEntry>& model_zoo() {
  static const std::vector<ZooEntry> zoo = [] {
    std::vector<ZooEntry> entries;
    for (const auto& row : model_rows()) {
      ModelConfig config;
      config.name = row.name;
      const auto graph = build_model(config, row.input, row.classes);
      entries.push_back({row.name, row.input, row.classes, graph.value().parameter_count(), row.description});
    }
    return entries;
  }();
  return zoo;
}

core::Result<Graph> zoo_model(const std::string& name) {
  ModelConfig config;
  config.name = name;
  const auto* const row = find_model(name);
  return row ? build_model(config, row->input, row->classes)
             : build_model(config, {1, 28, 28}, 10);  // names the nearest
}

double rate_share(const ModelConfig& config) {
  const auto* const row = find_model(config.name);
  return row && config.layers.json.empty() ? row->rate_share : kCautious;
}

core::Result<Graph> build_model(const ModelConfig& config, Shape input, std::int64_t classes, const Where& where) {
  if (!config.command.empty()) return program_of(config, where);
  core::Result<InitialiserKind> kind = InitialiserKind::xavier;
  if (config.initialiser != "auto")
    kind = parse_initialiser(config.initialiser, "model.initialiser");
  else if (const auto* const row = find_model(config.name))
    kind = row->weights;
  if (!kind) return tl::unexpected(std::move(kind.error()));
  const Loss loss = config.loss == "squared_error" ? Loss::squared_error : Loss::softmax_cross_entropy;
  const NetworkOptions from{config.widths,
                            config.activation,
                            loss,
                            config.classes > 0 ? config.classes : classes,
                            {*kind, config.init_scale},
                            config.zero_init_residual};
  const auto layers = choose_layers(config, from, where);
  if (!layers) return tl::unexpected(layers.error());
  const bool own = !config.layers.json.empty();
  const auto label = config.name.empty() ? "layers" : config.name;
  auto graph = Graph::build(label, input, layers->nodes, loss, layers->auxiliary, layers->places);
  if (const auto* const row = find_model(config.name); !graph && !own && row != nullptr && row->input != input)
    return core::fail(graph.error().code, fmt::format("{} ({} is made for images of {})", graph.error().message, label,
                                                      to_string(row->input)));
  if (graph && graph->output().size() < classes) {
    const auto place = own                  ? layers->places.layers.back()
                       : config.classes > 0 ? placed(where, "model.classes", fmt::format("model \"{}\"", label))
                                            : layers->places.model;
    return core::fail(core::Errc::config, fmt::format("{} has {} outputs but the data has {} classes: {}", place,
                                                      graph->output().size(), classes,
                                                      own ? fmt::format("give the last layer outputs = {}", classes)
                                                          : fmt::format("set model.classes = {}, or 0", classes)));
  }
  return graph;
}

}  // namespace troupe::nn
