/// Glyphs must be worth training on: the accuracy of a model without hidden layers is bounded from above. (The tests of LeNet
/// show that LeNet learns them.)
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "data/glyphs.hpp"

namespace troupe::data {
namespace {

constexpr std::size_t kPixels = kGlyphPixels, kClasses = 10;

/// Softmax regression by plain stochastic gradient descent, one sample at a time.
class LinearClassifier {
 public:
  void step(const std::array<float, kPixels>& image, std::size_t label, float rate) {
    std::array<float, kClasses> p = scores(image);
    const float largest = *std::max_element(p.begin(), p.end());
    float sum = 0;
    for (float& value : p) sum += value = std::exp(value - largest);
    for (std::size_t c = 0; c < kClasses; ++c) {
      const float step = rate * (p[c] / sum - (c == label ? 1.0f : 0.0f));
      for (std::size_t i = 0; i < kPixels; ++i) weights_[c][i] -= step * image[i];
      bias_[c] -= step;
    }
  }
  [[nodiscard]] std::size_t classify(const std::array<float, kPixels>& image) const {
    const auto s = scores(image);
    return static_cast<std::size_t>(std::max_element(s.begin(), s.end()) - s.begin());
  }

 private:
  [[nodiscard]] std::array<float, kClasses> scores(const std::array<float, kPixels>& image) const {
    auto s = bias_;
    for (std::size_t i = 0; i < kPixels; i += 16)  // in blocks, so that it vectorises without reordering a whole sum
      for (std::size_t c = 0; c < kClasses; ++c) {
        std::array<float, 16> products;
        for (std::size_t k = 0; k < 16; ++k) products[k] = weights_[c][i + k] * image[i + k];
        for (const float product : products) s[c] += product;
      }
    return s;
  }
  std::array<std::array<float, kPixels>, kClasses> weights_{};
  std::array<float, kClasses> bias_{};
};

std::vector<std::array<float, kPixels>> images(Split split, std::int64_t count) {
  std::vector<std::array<float, kPixels>> result(static_cast<std::size_t>(count));
  std::array<std::uint8_t, kPixels> bytes;
  for (std::int64_t index = 0; index < count; ++index) {
    draw_glyph(1, split, index, bytes);
    for (std::size_t i = 0; i < kPixels; ++i)
      result[static_cast<std::size_t>(index)][i] = static_cast<float>(bytes[i]) / 255 - 0.09f;
  }
  return result;
}

TEST(GlyphHardnessTest, ALinearClassifierLearnsThemButNotWell) {
  constexpr int kEpochs = 8;
  const auto train = images(Split::train, 10'000), test = images(Split::test, 5'000);
  LinearClassifier classifier;
  for (int epoch = 0; epoch < kEpochs; ++epoch)
    for (std::size_t k = 0; k < train.size(); ++k)
      classifier.step(train[k], k % kClasses, 0.01f * (1 - static_cast<float>(epoch) / kEpochs));
  const auto accuracy = [&](const auto& set) {
    std::size_t right = 0;
    for (std::size_t k = 0; k < set.size(); ++k) right += classifier.classify(set[k]) == k % kClasses;
    return static_cast<double>(right) / static_cast<double>(set.size());
  };
  const double on_train = accuracy(train), on_test = accuracy(test);
  RecordProperty("train", std::to_string(on_train));
  RecordProperty("test", std::to_string(on_test));
  EXPECT_GT(on_test, 0.65);  // there is something to learn
  EXPECT_LT(on_test, 0.93);
  EXPECT_LT(on_train, 0.93);  // the model is the limit: it cannot separate even its training samples
}

}  // namespace
}  // namespace troupe::data
