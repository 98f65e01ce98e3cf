#include "apps/reports/prediction_report.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace troupe::apps {
namespace {

TEST(PredictionReport, GreatestOutputsComeFirstWithTheirProbabilities) {
  const std::vector<float> outputs{1000, 1001, 998, 1001};  // exp would overflow
  const auto ranked = top_classes(outputs, 3, nn::Loss::softmax_cross_entropy);
  ASSERT_EQ(ranked.size(), 3U);
  EXPECT_EQ(ranked[0].label, 1);  // of equal outputs the lower number
  EXPECT_EQ(ranked[1].label, 3);
  EXPECT_EQ(ranked[2].label, 0);
  const double sum = 2 + std::exp(-1.0) + std::exp(-3.0);
  EXPECT_NEAR(ranked[0].score, 1 / sum, 1e-12);
  EXPECT_NEAR(ranked[2].score, std::exp(-1.0) / sum, 1e-12);
  EXPECT_EQ(top_classes(outputs, 9, nn::Loss::softmax_cross_entropy).size(), 4U);
  EXPECT_EQ(top_classes(outputs, 1, nn::Loss::squared_error), (std::vector<RankedClass>{{1, 1001}}));
}

TEST(PredictionReport, TextAndJsonNameClasses) {
  const std::vector<Prediction> predictions{{"a.jpg", {{1, 0.75}, {0, 0.25}}},
                                            {"b \"x\".png", {{2, 1}}},
                                            {"c.png", {}, core::Error{core::Errc::data, "c.png: cut"}}};
  EXPECT_EQ(prediction_text(predictions, {"cat", "dog"}),
            "a.jpg\n"
            "    0.7500  dog\n"
            "    0.2500  cat\n"
            "b \"x\".png\n"
            "    1.0000  2\n");
  EXPECT_EQ(prediction_json(predictions, {"cat", "dog"}),
            R"({"file":"a.jpg","top":[{"class":1,"name":"dog","score":0.75},{"class":0,"name":"cat","score":0.25}]})"
            "\n"
            R"({"file":"b \"x\".png","top":[{"class":2,"name":"2","score":1.0}]})"
            "\n"
            R"({"file":"c.png","error":"c.png: cut"})"
            "\n");
}

}  // namespace
}  // namespace troupe::apps
