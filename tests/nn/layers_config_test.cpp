// Names, inputs and blocks of model.layers.
#include <gtest/gtest.h>

#include "nn/zoo/models.hpp"

namespace troupe::nn {
namespace {

core::Result<Graph> graph_of_layers(const std::string& layers) {
  core::Schema schema;
  schema.add(model_table());
  const auto config = core::Config::parse(schema, "[model]\nlayers = [" + layers + "]", "a.toml", {});
  if (!config) return tl::unexpected(config.error());
  return build_model(config->get(model_table()), {3, 8, 8}, 5,
                     [&](const std::string& key) { return config->where(key); });
}

std::string refusal_of(const std::string& layers) {
  const auto graph = graph_of_layers(layers);
  return graph ? "accepted" : graph.error().message;
}

std::vector<std::string> described(const Graph& graph) {
  std::vector<std::string> lines;
  for (const auto& node : graph.nodes()) {
    auto line = node.name + " <-";
    for (const int from : node.inputs)
      line += " " + (from < 0 ? std::string("input") : graph.nodes()[static_cast<std::size_t>(from)].name);
    lines.push_back(line);
  }
  return lines;
}

constexpr const char* kEnd = R"({type = "linear", outputs = 5})";

TEST(LayersConfig, LayersTakeTheirInputsByName) {
  const auto graph = graph_of_layers(R"(
    {type = "conv2d", outputs = 4, kernel = 3, padding = 1, name = "stem"},
    {type = "conv2d", outputs = 6, kernel = 1, name = "b1"},
    {type = "pool", kernel = 3, stride = 1, padding = 1, name = "pool1", inputs = ["stem"]},
    {name = "b2", inputs = ["b1", "pool1", "input"], type = "concat"},
    {type = "global_average_pool"}, )" +
                                     std::string(kEnd));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(described(*graph), (std::vector<std::string>{"stem <- input", "b1 <- stem", "pool1 <- stem",
                                                         "b2 <- b1 pool1 input", "avgpool1 <- b2", "fc1 <- avgpool1"}));
  EXPECT_EQ(graph->nodes()[3].output, (Shape{13, 8, 8}));
}

TEST(LayersConfig, BlocksRepeatAndKeepTheirNamesApart) {
  const auto graph = graph_of_layers(R"(
    {type = "conv2d", outputs = 4, kernel = 3, padding = 1, name = "stem"},
    {repeat = 2, name = "block", layers = [
      {type = "conv2d", outputs = 4, kernel = 3, padding = 1},
      {type = "relu"},
      {type = "conv2d", outputs = 4, kernel = 3, padding = 1, name = "last"},
      {type = "add", inputs = ["last", "input"]}]},
    {name = "tail", layers = [{type = "add", inputs = ["input", "stem"]}, {type = "relu"}]}, )" +
                                     std::string(kEnd));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(described(*graph), (std::vector<std::string>{
                                   "stem <- input", "block.0.conv1 <- stem", "block.0.relu1 <- block.0.conv1",
                                   "block.0.last <- block.0.relu1", "block.0.add1 <- block.0.last stem",
                                   "block.1.conv1 <- block.0.add1", "block.1.relu1 <- block.1.conv1",
                                   "block.1.last <- block.1.relu1", "block.1.add1 <- block.1.last block.0.add1",
                                   "tail.add1 <- block.1.add1 stem", "tail.relu1 <- tail.add1", "fc1 <- tail.relu1"}));
}

TEST(LayersConfig, ALayerMayHaveALossOfItsOwn) {
  const auto graph = graph_of_layers(R"(
    {type = "conv2d", outputs = 4, kernel = 3, name = "stem"},
    {type = "linear", outputs = 5, name = "extra", auxiliary_loss = 0.3},
    {type = "relu", inputs = ["stem"]}, )" +
                                     std::string(kEnd));
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_EQ(graph->heads().size(), 2U);
  EXPECT_EQ(graph->heads()[0].node, 1);
  EXPECT_EQ(graph->heads()[0].weight, 0.3);
}

TEST(LayersConfig, ErrorsNameThePlaceAndTheLayer) {
  const std::string stem = R"({type = "conv2d", outputs = 4, kernel = 3, name = "stem"}, )";
  const std::string end = std::string(", ") + kEnd;
  EXPECT_EQ(refusal_of(stem + R"({type = "relu", inputs = ["sten"]})" + end),
            "a.toml:2: model.layers[1] (relu): inputs: no earlier layer is called \"sten\" (nearest: \"stem\")");
  EXPECT_EQ(refusal_of(stem + R"({type = "relu", inputs = []})" + end),
            "a.toml:2: model.layers[1] (relu): inputs = []: must have a name");
  EXPECT_EQ(refusal_of(stem + R"({type = "relu", inputs = [1]})" + end),
            "a.toml:2: model.layers[1] (relu): inputs = [1]: must be a list of names");
  EXPECT_EQ(refusal_of(stem + R"({type = "relu", name = "stem"})" + end),
            "a.toml:2: model.layers[1] (relu): the name \"stem\" is that of an earlier layer");
  EXPECT_EQ(refusal_of(stem + R"({type = "relu", name = "input"})" + end),
            "a.toml:2: model.layers[1] (relu): name = \"input\": must be a word in quotes, and not \"input\"");
  EXPECT_EQ(refusal_of(stem + R"({repeat = 0, layers = [{type = "relu"}]})" + end),
            "a.toml:2: model.layers[1]: repeat = 0: must be an integer from 1 to 1000");
  EXPECT_EQ(refusal_of(stem + R"({times = 2, layers = [{type = "relu"}]})" + end),
            "a.toml:2: model.layers[1]: unknown key \"times\": a block has repeat, name, inputs, layers");
  EXPECT_EQ(refusal_of(stem + R"({repeat = 2, layer = [{type = "relu"}]})" + end),
            "a.toml:2: model.layers[1]: unknown key \"layer\" (nearest: \"layers\"): a block has repeat, name, "
            "inputs, layers");
  EXPECT_EQ(refusal_of(stem + R"({type = "relu", repeat = 2})" + end),
            "a.toml:2: model.layers[1]: repeat belongs to a block: {repeat = 2, layers = [{type = …}]}");
  EXPECT_EQ(refusal_of(stem + R"({repeat = 2, name = "block"})" + end),
            "a.toml:2: model.layers[1]: layers is missing: what the block repeats");
  EXPECT_EQ(refusal_of(stem + R"({repeat = 2, layers = []})" + end),
            "a.toml:2: model.layers[1].layers: must be a list of tables like {type = \"relu\"}");
  EXPECT_EQ(refusal_of(stem + R"({name = "b", layers = [{type = "relu"}, {type = "pol"}]})" + end).substr(0, 77),
            "a.toml:2: model.layers[1].layers[1]: unknown type \"pol\" (nearest: \"pool\"): on");
  EXPECT_EQ(refusal_of(stem + R"({type = "linear", outputs = 5, auxiliary_loss = -1})" + end),
            "a.toml:2: model.layers[1] (linear): auxiliary_loss = -1: must be a number ≥ 0");
  EXPECT_EQ(
      refusal_of(R"({repeat = 1000, layers = [{repeat = 1000, layers = [{type = "relu"}]}]}, )" + std::string(kEnd)),
      "a.toml:2: model.layers[0].layers[0].layers[0]: there are more than 10000 layers by here");
}

}  // namespace
}  // namespace troupe::nn
