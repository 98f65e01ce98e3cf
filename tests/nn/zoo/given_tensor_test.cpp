#include "nn/zoo/given_tensor.hpp"

#include <gtest/gtest.h>

namespace troupe::nn {
namespace {

TEST(GivenTensor, ItsTextIsItsNameAndShape) {
  EXPECT_EQ(to_string({"fc1.weight", {128, 64}}), "fc1.weight 128x64");
  EXPECT_EQ(to_string({"bias", {7}}), "bias 7");
  EXPECT_EQ(to_string({"scale", {}}), "scale scalar");
}

TEST(GivenTensor, EveryTextReadsAsWhatItCameFrom) {
  for (const GivenTensor& tensor : std::vector<GivenTensor>{{"w", {1}},
                                                            {"a name with spaces", {3, 1, 4}},
                                                            {"x", {9223372036854775807}},
                                                            {"scalar", {}},
                                                            {"scalar scalar", {2}},
                                                            {"3x4", {5, 6}}}) {
    const auto read = parse_given_tensor(to_string(tensor));
    ASSERT_TRUE(read) << to_string(tensor);
    EXPECT_EQ(*read, tensor);
  }
}

TEST(GivenTensor, OtherTextIsRefused) {
  for (const auto* text : {"", "w", " 3", "w ", "w x", "w 3x", "w x3", "w 3xx4", "w 3.5", "w 3 ",
                           "w 9223372036854775808", "w 3X4", "w scalars"})
    EXPECT_EQ(parse_given_tensor(text).error().code, core::Errc::config) << text;
}

TEST(GraphOfProgram, HasTheTensorsAsTheyAreGiven) {
  const auto graph = Graph::of_program("mine", {{"w", {2, 3}}, {"scale", {}}}, {{"mean", {4, 5}}});
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_TRUE(graph->is_program());
  EXPECT_EQ(graph->name(), "mine");
  ASSERT_EQ(graph->parameters().size(), 2U);
  EXPECT_EQ(graph->parameters()[0].name, "w");
  EXPECT_EQ(graph->parameters()[0].shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(graph->parameters()[1].shape, std::vector<std::int64_t>{});
  EXPECT_EQ(graph->parameters()[1].size(), 1);
  ASSERT_EQ(graph->statistics().size(), 1U);
  EXPECT_EQ(graph->statistics()[0].channels, 20);
  EXPECT_EQ(graph->statistics()[0].shape(), (std::vector<std::int64_t>{4, 5}));
  EXPECT_EQ(graph->training_flops(), 0);  // nobody knows them
  EXPECT_FALSE(Graph::sequential("net", {1, 2, 2}, {LinearLayer{2, {}}}, Loss::softmax_cross_entropy)->is_program());
}

TEST(GraphOfProgram, RefusesWhatCannotBeTrained) {
  const auto refused = [](const std::vector<GivenTensor>& parameters, const std::vector<GivenTensor>& statistics = {}) {
    const auto graph = Graph::of_program("mine", parameters, statistics);
    EXPECT_FALSE(graph);
    if (graph) return std::string();
    EXPECT_EQ(graph.error().code, core::Errc::config);
    return graph.error().message;
  };
  EXPECT_EQ(refused({}), "program \"mine\": it has no parameters to train");
  EXPECT_NE(refused({{"w", {1}}, {"w", {2}}}).find("two of its tensors are called \"w\""), std::string::npos);
  EXPECT_NE(refused({{"w", {1}}}, {{"w", {2}}}).find("\"w\""), std::string::npos);  // also of the other kind
  EXPECT_NE(refused({{"", {1}}}).find("or one has no name"), std::string::npos);
  for (const std::vector<std::int64_t>& shape :
       std::vector<std::vector<std::int64_t>>{{0},
                                              {3, -1},
                                              {(std::int64_t{1} << 40) + 1},
                                              {std::int64_t{1} << 21, std::int64_t{1} << 20},
                                              {std::int64_t{1} << 62, 4}})
    EXPECT_NE(refused({{"w", shape}}).find("extents are 1 or more, and elements at most 2^40"), std::string::npos);
  EXPECT_TRUE(Graph::of_program("mine", {{"w", {std::int64_t{1} << 20, std::int64_t{1} << 20}}}, {}));
}

}  // namespace
}  // namespace troupe::nn
