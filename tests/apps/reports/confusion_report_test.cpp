#include "apps/reports/confusion_report.hpp"

#include <gtest/gtest.h>

namespace troupe::apps {
namespace {

experiment::ConfusionMatrix cats_and_dogs() {
  experiment::ConfusionMatrix matrix;
  for (int i = 0; i < 3; ++i) matrix.add(0, 0);
  matrix.add(0, 1);
  for (int i = 0; i < 2; ++i) matrix.add(1, 1);
  return matrix;
}

TEST(ConfusionReport, FewClassesAreATableAndAMatrix) {
  EXPECT_EQ(confusion_text(cats_and_dogs(), {"cat", "dog"}),
            "class   samples   accuracy   most often taken for\n"
            "cat           4    75.00 %   dog (1)\n"
            "dog           2   100.00 %\n"
            "\n"
            "true class (rows), prediction (columns)\n"
            "    cat dog\n"
            "cat   3   1\n"
            "dog   0   2\n");
}

TEST(ConfusionReport, OfManyClassesTheWorstAreShownAndJsonHasAll) {
  experiment::ConfusionMatrix matrix;
  for (std::int32_t label = 0; label < 100; ++label)
    for (std::int32_t i = 0; i < 100; ++i) matrix.add(label, i < label ? label : (label + 1) % 100);
  const auto text = confusion_text(matrix, {});
  EXPECT_TRUE(text.starts_with("the 20 worst of 100 classes\n")) << text;
  EXPECT_NE(text.find("\n19          100    19.00 %   20 (81)\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("\n20 "), std::string::npos) << text;
  EXPECT_EQ(text.find("true class"), std::string::npos) << text;
  const auto json = confusion_json(matrix, {});
  EXPECT_EQ(json["classes"].size(), 100U);
  EXPECT_EQ(json["confusion"].size(), 199U);  // class 0 is never right
  EXPECT_EQ(confusion_figures(matrix, {}, "t").size(), 2U);
}

}  // namespace
}  // namespace troupe::apps
