#include "core/text/nearest.hpp"

#include <gtest/gtest.h>

namespace troupe::core {
namespace {

const std::vector<std::string> kCommands{"train", "check", "eval", "models", "node", "nodes"};

TEST(Nearest, ForgivesSlipsAndSwaps) {
  EXPECT_EQ(nearest_word("trian", kCommands), "train");
  EXPECT_EQ(nearest_word("chek", kCommands), "check");
  EXPECT_EQ(nearest_word("noeds", kCommands), "nodes");
  EXPECT_EQ(nearest_word("--quite", {"--quiet", "--plain"}), "--quiet");
}

TEST(Nearest, SuggestsNothingThatIsFar) {
  for (const char* far : {"help", "frobnicate", "x", "", "--", "install"}) EXPECT_EQ(nearest_word(far, kCommands), "");
  EXPECT_EQ(nearest_word("resnet18", {"cifar", "lenet", "mlp"}), "");
  EXPECT_EQ(nearest_word("rate", {"type"}), "");
  EXPECT_EQ(nearest_word("x", {"s"}), "");
  EXPECT_EQ(nearest_word("x", {}), "");
}

TEST(Nearest, KnowsWordsAndInitials) {
  const std::vector<std::string> keys{"lr", "lr_step", "batch", "epochs", "weight_decay", "checkpoint_every"};
  EXPECT_EQ(nearest_word("learning_rate", keys), "lr");
  EXPECT_EQ(nearest_word("batch_size", keys), "batch");
  EXPECT_EQ(nearest_word("num-epochs", keys), "epochs");
  EXPECT_EQ(nearest_word("wd", keys), "weight_decay");
  EXPECT_EQ(nearest_word("decay", keys), "weight_decay");
  EXPECT_EQ(nearest_word("checkpoint", keys), "checkpoint_every");
}

TEST(Nearest, HintIsEmptyWithoutANearWord) {
  EXPECT_EQ(nearest_hint("trian", kCommands, Quotes::no), " (nearest: train)");
  EXPECT_EQ(nearest_hint("trian", kCommands, Quotes::yes), " (nearest: \"train\")");
  EXPECT_EQ(nearest_hint("help", kCommands, Quotes::yes), "");
}

}  // namespace
}  // namespace troupe::core
