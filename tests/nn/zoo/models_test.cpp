#include "nn/zoo/models.hpp"

#include <gtest/gtest.h>

namespace troupe::nn {
namespace {

constexpr Shape kMnistImage{1, 28, 28};
const std::string kModels =
    "alexnet | alexnet_torch | cifar | googlenet | googlenet_torch | lenet | mlp | resnet18 | resnet50 | vgg16 | vgg19 "
    "| wrn_28_4";
const std::string kTypes =
    "adaptive_average_pool | add | batch_norm | concat | conv2d | dropout | flatten | global_average_pool | linear | "
    "lrn | pool | relu | sigmoid | tanh";

/// The [model] section of a configuration file.
ModelConfig config_of(const std::string& toml) {
  core::Schema schema;
  schema.add(model_table());
  const auto config = core::Config::parse(schema, "[model]\n" + toml, "test.toml", {});
  EXPECT_TRUE(config) << config.error().message;
  return config ? config->get(model_table()) : ModelConfig{};
}

Graph build(const std::string& toml, Shape input = kMnistImage, std::int64_t classes = 10) {
  auto graph = build_model(config_of(toml), input, classes);
  EXPECT_TRUE(graph) << graph.error().message;
  return std::move(graph.value());
}

std::string error_of(const std::string& toml, Shape input = kMnistImage, std::int64_t classes = 10) {
  const auto graph = build_model(config_of(toml), input, classes);
  if (graph) return "accepted";
  EXPECT_EQ(graph.error().code, core::Errc::config);
  return graph.error().message;
}

std::vector<std::string> names_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& node : graph.nodes()) names.push_back(node.name);
  return names;
}

TEST(Models, MlpHasTwoSigmoidLayersByDefault) {
  const Graph graph = build("name = \"mlp\"");
  EXPECT_EQ(names_of(graph), (std::vector<std::string>{"fc1", "sigmoid1", "fc2", "sigmoid2", "fc3"}));
  EXPECT_EQ(graph.parameter_count(), 784 * 100 + 100 + 100 * 100 + 100 + 100 * 10 + 10);
  EXPECT_EQ(graph.loss(), Loss::softmax_cross_entropy);
  EXPECT_EQ(graph.parameters()[0].initialiser.kind, InitialiserKind::xavier);
}

TEST(Models, BlueGeneMlpHasSigmoidOutputs) {
  const Graph graph = build("name = \"mlp\"\nloss = \"squared_error\"");
  EXPECT_EQ(names_of(graph), (std::vector<std::string>{"fc1", "sigmoid1", "fc2", "sigmoid2", "fc3", "sigmoid3"}));
  EXPECT_EQ(graph.loss(), Loss::squared_error);
}

TEST(Models, MlpTakesWidthsActivationAndInitialiser) {
  const Graph graph = build(
      "name = \"mlp\"\nwidths = 7\nactivation = \"relu\"\ninitialiser = \"normal\"\ninit_scale = 0.05", {3, 1, 1}, 4);
  EXPECT_EQ(names_of(graph), (std::vector<std::string>{"fc1", "relu1", "fc2"}));
  EXPECT_EQ(graph.parameter_count(), 3 * 7 + 7 + 7 * 4 + 4);
  EXPECT_EQ(graph.parameters()[0].initialiser, (Initialiser{InitialiserKind::normal, 0.05}));
  EXPECT_EQ(names_of(build("name = \"mlp\"\nwidths = []")), std::vector<std::string>{"fc1"});  // logistic regression
}

TEST(Models, LenetHasItsLayersAndParameters) {
  const Graph graph = build("name = \"lenet\"");
  EXPECT_EQ(names_of(graph), (std::vector<std::string>{"conv1", "pool1", "conv2", "pool2", "fc1", "relu1", "fc2"}));
  EXPECT_EQ(graph.parameter_count(), 431080);
  EXPECT_EQ(build("name = \"lenet\"", {3, 32, 32}).parameters()[4].shape,
            (std::vector<std::int64_t>{500, 1250}));  // 50 · 5 · 5
}

TEST(Models, CifarHasItsLayersAndParameters) {
  constexpr Shape kCrop{3, 28, 28};
  const Graph graph = build("name = \"cifar\"", kCrop);
  EXPECT_EQ(names_of(graph), (std::vector<std::string>{"conv1", "relu1", "pool1", "conv2", "relu2", "pool2", "conv3",
                                                       "relu3", "fc1", "relu4", "dropout1", "fc2"}));
  // 28 → 24 → 12 → 8 → 4 → 2: 64·75+64 + 128·1600+128 + 64·1152+64 + 256·256+256 + 10·256+10
  EXPECT_EQ(graph.parameter_count(), 4864 + 204928 + 73792 + 65792 + 2570);
  EXPECT_EQ(graph.parameters()[0].initialiser.kind, InitialiserKind::he);
  EXPECT_EQ(build("name = \"cifar\"\ninitialiser = \"xavier\"", kCrop).parameters()[0].initialiser.kind,
            InitialiserKind::xavier);
}

TEST(Models, OutputsFollowTheDataUnlessSet) {
  EXPECT_EQ(build("name = \"mlp\"", kMnistImage, 26).output().size(), 26);
  EXPECT_EQ(build("name = \"mlp\"\nclasses = 30", kMnistImage, 26).output().size(), 30);
  EXPECT_EQ(error_of("name = \"mlp\"\nclasses = 10", kMnistImage, 26),
            "model \"mlp\" has 10 outputs but the data has 26 classes: set model.classes = 26, or 0");
  EXPECT_EQ(error_of("layers = [{type = \"linear\", outputs = 10}]", kMnistImage, 26),
            "model.layers[0] (linear) has 10 outputs but the data has 26 classes: give the last layer outputs = 26");
}

TEST(Models, ImagesThatAreTooSmallAreComparedWithThoseOfTheModel) {
  EXPECT_EQ(error_of("name = \"alexnet\"", kMnistImage, 10),
            "model \"alexnet\": layer \"pool2\" with input 256x2x2: kernel 3 is larger than the input with padding 0 "
            "(alexnet is made for images of 3x227x227)");
}

TEST(Models, LayerListBuildsItsGraph) {
  const Graph graph = build(R"(
name = "mine"
initialiser = "he"
layers = [
  {type = "conv2d", outputs = 20, kernel = 5, stride = 2, padding = 2},
  {type = "relu"},
  {type = "pool", kind = "average", kernel = 3},
  {type = "pool"},
  {type = "flatten"},
  {type = "dropout"},
  {type = "linear", outputs = 30, initialiser = "uniform", init_scale = 0.5},
  {type = "tanh"},
  {type = "dropout", rate = 0},
  {type = "linear", outputs = 10},
  {type = "sigmoid"},
])");
  EXPECT_EQ(graph.name(), "mine");
  EXPECT_EQ(names_of(graph), (std::vector<std::string>{"conv1", "relu1", "pool1", "pool2", "flatten1", "dropout1",
                                                       "fc1", "tanh1", "dropout2", "fc2", "sigmoid1"}));
  EXPECT_EQ(graph.nodes()[0].output, (Shape{20, 14, 14}));  // (28 + 4 − 5) / 2 + 1
  EXPECT_EQ(graph.nodes()[2].output, (Shape{20, 4, 4}));    // stride = kernel = 3
  EXPECT_EQ(graph.nodes()[3].output, (Shape{20, 2, 2}));    // max 2
  EXPECT_EQ(std::get<PoolLayer>(graph.nodes()[2].layer).kind, PoolKind::average);
  EXPECT_EQ(std::get<PoolLayer>(graph.nodes()[3].layer).kind, PoolKind::max);
  EXPECT_EQ(std::get<DropoutLayer>(graph.nodes()[5].layer).rate, 0.5);
  EXPECT_EQ(std::get<DropoutLayer>(graph.nodes()[8].layer).rate, 0);
  EXPECT_EQ(graph.parameters()[0].initialiser.kind, InitialiserKind::he);
  EXPECT_EQ(graph.parameters()[2].initialiser, (Initialiser{InitialiserKind::uniform, 0.5}));
}

TEST(Models, LayerListTakesGroupsAndNormalisation) {
  const Graph graph = build(R"(name = "mine"
layers = [
  {type = "conv2d", outputs = 8, kernel = 3, bias = false},
  {type = "batch_norm"},
  {type = "relu"},
  {type = "conv2d", outputs = 4, kernel = 3, groups = 2},
  {type = "lrn"},
  {type = "lrn", size = 3, alpha = 0.5, beta = 1, k = 2},
  {type = "batch_norm", epsilon = 0.25, momentum = 0.5},
  {type = "linear", outputs = 10},
])");
  EXPECT_EQ(names_of(graph),
            (std::vector<std::string>{"conv1", "bn1", "relu1", "conv2", "lrn1", "lrn2", "bn2", "fc1"}));
  EXPECT_FALSE(std::get<Conv2dLayer>(graph.nodes()[0].layer).bias);
  EXPECT_EQ(std::get<Conv2dLayer>(graph.nodes()[0].layer).groups, 1);
  EXPECT_EQ(std::get<BatchNormLayer>(graph.nodes()[1].layer).epsilon, 1e-5);
  EXPECT_EQ(std::get<BatchNormLayer>(graph.nodes()[1].layer).momentum, 0.1);
  EXPECT_EQ(std::get<Conv2dLayer>(graph.nodes()[3].layer).groups, 2);
  const auto& usual = std::get<LrnLayer>(graph.nodes()[4].layer);
  EXPECT_EQ(std::tuple(usual.size, usual.alpha, usual.beta, usual.k), std::tuple(5, 1e-4, 0.75, 1.0));
  const auto& own = std::get<LrnLayer>(graph.nodes()[5].layer);
  EXPECT_EQ(std::tuple(own.size, own.alpha, own.beta, own.k), std::tuple(3, 0.5, 1.0, 2.0));
  EXPECT_EQ(std::get<BatchNormLayer>(graph.nodes()[6].layer).epsilon, 0.25);
  EXPECT_EQ(std::get<BatchNormLayer>(graph.nodes()[6].layer).momentum, 0.5);
  EXPECT_EQ(error_of("layers = [{type = \"conv2d\", outputs = 3, kernel = 1, bias = 0}]"),
            "model.layers[0] (conv2d): bias = 0: must be true or false");
}

TEST(Models, UnknownNamesAreErrorsWithTheNearest) {
  EXPECT_EQ(error_of("name = \"lenett\""),
            "model.name = \"lenett\" is unknown (nearest: \"lenet\"): one of " + kModels + ", or give model.layers");
  EXPECT_EQ(error_of(""), "model.name is not set: one of " + kModels + ", or give model.layers");
  EXPECT_EQ(error_of("name = \"mlp\"\nlayers = [{type = \"linear\", outputs = 10}]"),
            "model.name = \"mlp\" is a model of its own: leave out model.layers or choose another name");
}

TEST(Models, LayerErrorsNameTheLayer) {
  const auto error = [](const std::string& layer) { return error_of("layers = [{type = \"relu\"}, " + layer + "]"); };
  EXPECT_EQ(error("{type = \"conv\", outputs = 3}"),
            "model.layers[1]: unknown type \"conv\" (nearest: \"conv2d\"): one of " + kTypes);
  EXPECT_EQ(error("{outputs = 3}"), "model.layers[1]: type is missing: one of " + kTypes);
  EXPECT_EQ(error("{type = 3}"), "model.layers[1]: type = 3: must be text in quotes");
  EXPECT_EQ(error("3"), "model.layers[1]: 3 is not a table like {type = \"relu\"}");
  EXPECT_EQ(error("{type = \"linear\", output = 3}"),
            "model.layers[1] (linear): unknown key \"output\" (nearest: \"outputs\")");
  EXPECT_EQ(error("{type = \"relu\", rate = 3}"), "model.layers[1] (relu): unknown key \"rate\": it has none");
  EXPECT_EQ(error("{type = \"linear\"}"), "model.layers[1] (linear): outputs is missing");
  EXPECT_EQ(error("{type = \"conv2d\", outputs = 3}"), "model.layers[1] (conv2d): kernel is missing");
  EXPECT_EQ(error("{type = \"linear\", outputs = 2.5}"), "model.layers[1] (linear): outputs = 2.5: must be an integer");
  EXPECT_EQ(error("{type = \"dropout\", rate = \"half\"}"),
            "model.layers[1] (dropout): rate = \"half\": must be a number");
  EXPECT_EQ(error("{type = \"pool\", kind = \"mean\"}"),
            "model.layers[1] (pool): kind = \"mean\": must be one of max | average");
  EXPECT_EQ(error("{type = \"pool\", kind = 1}"), "model.layers[1] (pool): kind = 1: must be text in quotes");
  EXPECT_EQ(error("{type = \"linear\", outputs = 3, initialiser = \"xavi\"}"),
            "model.layers[1] (linear): initialiser = \"xavi\": must be one of normal | uniform | xavier | he (nearest: "
            "\"xavier\")");
  EXPECT_EQ(error_of("layers = {type = \"relu\"}"), "model.layers: must be a list of tables like {type = \"relu\"}");
  EXPECT_EQ(error_of("layers = []"), "model.layers: it has no layers");
  EXPECT_EQ(error_of("layers = [{type = \"linear\", outputs = 0}]"),
            "model.layers[0] (linear) with input 1x28x28: outputs = 0 is not between 1 and 16,777,216");
}

TEST(Models, ErrorsBeginWithThePlace) {
  const auto error = [](const std::string& body) {
    core::Schema schema;
    schema.add(model_table());
    const auto config = core::Config::parse(schema, "[model]\n" + body, "a.toml", {});
    EXPECT_TRUE(config) << config.error().message;
    const auto graph = build_model(config->get(model_table()), {1, 28, 28}, 10,
                                   [&](const std::string& key) { return config->where(key); });
    return graph ? "(accepted)" : graph.error().message;
  };
  EXPECT_EQ(error("name = \"resnet34\""),
            "a.toml:2: model.name = \"resnet34\" is unknown (nearest: \"resnet18\"): one of " + kModels +
                ", or give model.layers");
  EXPECT_EQ(error("layers = [\n  {type = \"relu\"},\n  {type = \"linear\"}]"),
            "a.toml:4: model.layers[1] (linear): outputs is missing");
  EXPECT_EQ(error("layers = [\n  {type = \"conv2d\", outputs = 2, kernel = 30},\n  {type = \"linear\", outputs = 10}]"),
            "a.toml:3: model.layers[0] (conv2d) with input 1x28x28: kernel 30 is larger than the input with padding 0");
  EXPECT_EQ(error("layers = [\n  {type = \"conv2d\", outputs = 2, kernel = 3}]"),
            "a.toml:3: model.layers[0] (conv2d), the last one, gives 2x26x26, and the loss needs a vector: end with a "
            "linear or flatten layer");
  EXPECT_EQ(
      error("layers = [\n  {type = \"linear\", outputs = 5}]"),
      "a.toml:3: model.layers[0] (linear) has 5 outputs but the data has 10 classes: give the last layer outputs = "
      "10");
  EXPECT_EQ(error("name = \"lenet\"\nclasses = 5"),
            "a.toml:3: model \"lenet\" has 5 outputs but the data has 10 classes: set model.classes = 10, or 0");
}

TEST(Models, LayerTypesListEveryKeyWithItsDefault) {
  std::string text;
  for (const auto& type : layer_types()) {
    text += type.name + ":";
    for (const auto& key : type.keys) text += " " + key.name + (key.otherwise.empty() ? "" : "=" + key.otherwise);
    text += "\n";
  }
  EXPECT_EQ(text,
            "adaptive_average_pool: size\n"
            "add:\n"
            "batch_norm: epsilon=0.00001 momentum=0.1 initial_weight=1\n"
            "concat:\n"
            "conv2d: outputs kernel stride=1 padding=0 groups=1 bias=true initialiser=model.initialiser "
            "init_scale=model.init_scale\n"
            "dropout: rate=0.5\n"
            "flatten:\n"
            "global_average_pool:\n"
            "linear: outputs initialiser=model.initialiser init_scale=model.init_scale\n"
            "lrn: size=5 alpha=0.0001 beta=0.75 k=1\n"
            "pool: kind=\"max\" kernel=2 stride=the kernel padding=0 ceil=false\n"
            "relu:\n"
            "sigmoid:\n"
            "tanh:\n");
}

TEST(Models, ZooListsEveryModelWithItsDefaults) {
  const auto& zoo = model_zoo();
  std::string lines;
  for (const auto& entry : zoo) {
    lines += entry.name + " " + to_string(entry.input) + " " + std::to_string(entry.parameters) + "; ";
    EXPECT_FALSE(entry.description.empty());
  }
  EXPECT_EQ(
      lines,
      "alexnet 3x227x227 60965224; alexnet_torch 3x224x224 61100840; cifar 3x28x28 351946; googlenet 3x224x224 "
      "13378280; "
      "googlenet_torch 3x224x224 13004888; lenet 1x28x28 431080; mlp 1x28x28 89610; resnet18 3x224x224 11689512; "
      "resnet50 3x224x224 25557032; vgg16 3x224x224 138357544; vgg19 3x224x224 143667240; wrn_28_4 3x32x32 5849050; ");
}

}  // namespace
}  // namespace troupe::nn
