// Warnings of a resumed run whose settings differ from those before. Other data, optimizers and lengths: tests/actors.
#include "experiment/state/resume_notes.hpp"

#include <gtest/gtest.h>

#include "experiment/settings.hpp"

namespace troupe::experiment {
namespace {

using Options = std::vector<std::string>;

core::Config config_of(const std::string& text, const Options& options) {
  auto config = core::Config::parse(schema(), text, "a.toml", options);
  if (!config) throw std::logic_error(config.error().message);
  return *std::move(config);
}

/// What a run that began with the options `before` is told when it goes on with `--set more`.
Options warnings(const Options& before, const Options& more) {
  const auto recorded = config_of(
      "[model]\nname = \"lenet\"\n[data]\nname = \"glyphs\"\ntrain_samples = 1000\ntest_samples = "
      "100\n[cluster]\nworkers = 2\n",
      before);
  const auto spec = build_run_spec(resolve(config_of(recorded.to_toml(), more)).value(), true).value();
  Checkpoint checkpoint;  // of an older program: without fingerprints
  checkpoint.optimizer = spec.settings->train.optimizer;
  Options texts;
  for (const auto& note : notes_on_resume(spec, checkpoint, recorded)) texts.push_back(note.text);
  return texts;
}

// 0.6 / workers of 0.05 where all workers push full steps: 0.015 for two of them, 0.0075 for four.
TEST(ResumeNotes, RateThatAutoChoseForOtherWorkersIsNamed) {
  const auto of_workers = warnings({"strategy.name=ssp"}, {"cluster.workers=4"});
  ASSERT_EQ(of_workers.size(), 1U);
  EXPECT_NE(of_workers[0].find("train.lr = 0.015"), std::string::npos) << of_workers[0];
  EXPECT_NE(of_workers[0].find("it means 0.0075: --set train.lr=auto"), std::string::npos) << of_workers[0];
  EXPECT_EQ(warnings({"strategy.name=bsp"}, {"strategy.name=ssp"}).size(), 1U);
}

TEST(ResumeNotes, RateThatFitsOrIsTheUsersIsNotNamed) {
  EXPECT_EQ(warnings({"strategy.name=ssp"}, {}), Options{});
  EXPECT_EQ(warnings({"strategy.name=bsp"}, {"cluster.workers=4"}), Options{});
  EXPECT_EQ(warnings({"strategy.name=ssp"}, {"cluster.workers=4", "train.lr=auto"}), Options{});
  EXPECT_EQ(warnings({"strategy.name=ssp"}, {"cluster.workers=4", "train.lr=0.015"}), Options{});
  EXPECT_EQ(warnings({"strategy.name=ssp", "train.lr=0.02"}, {"cluster.workers=4"}), Options{});
}

/// Samples that were trained may be in another validation split: run.seed chooses it.
TEST(ResumeNotes, AnotherValidationSplitIsNamed) {
  const Options held_out{"data.validation=\"0.1\""};
  const auto of_seed = warnings(held_out, {"run.seed=7"});
  ASSERT_EQ(of_seed.size(), 1U);
  EXPECT_NE(of_seed[0].find("(run.seed = 7, before 1)"), std::string::npos) << of_seed[0];
  EXPECT_EQ(warnings(held_out, {"data.validation=\"0.2\""}).size(), 1U);
  EXPECT_EQ(warnings({}, {"run.seed=7"}), Options{});
  EXPECT_EQ(warnings({"data.validation=\"0.1\""}, {"run.epochs=9"}), Options{});
}

/// The order of an epoch follows from run.seed.
TEST(ResumeNotes, AnotherOrderWithinAnEpochIsNamed) {
  const auto recorded = config_of(
      "[model]\nname = \"mlp\"\n[data]\nname = \"glyphs\"\ntrain_samples = 40\nbatch = 20\n", {"cluster.workers=1"});
  const auto spec = build_run_spec(resolve(config_of(recorded.to_toml(), {"run.seed=7"})).value(), true).value();
  Checkpoint checkpoint;
  checkpoint.optimizer = spec.settings->train.optimizer;
  const auto count = [&](const core::Config& before) { return notes_on_resume(spec, checkpoint, before).size(); };
  EXPECT_EQ(count(recorded), 0U);
  spec.leases->done(0, spec.leases->grant(0)->index);
  const auto notes = notes_on_resume(spec, checkpoint, recorded);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].text,
            "run.seed = 7, before 1: what is left of epoch 1 has another order, so that samples come twice in it and "
            "others not at all; leave it out, or change it at the end of an epoch");
  EXPECT_EQ(count(spec.settings->config), 0U);
  spec.leases->done(0, spec.leases->grant(0)->index);
  EXPECT_EQ(count(recorded), 0U);
}

/// The rate is lr · workers, and in a warm-up it begins at lr / workers.
TEST(ResumeNotes, RateThatFollowsTheNumberOfWorkersIsNamed) {
  const Options more{"cluster.workers=4"};
  const auto scaled = warnings({"train.lr=0.1", "train.scale_lr=true"}, more);
  ASSERT_EQ(scaled.size(), 1U);
  EXPECT_EQ(scaled[0],
            "cluster.workers = 4, before 2: train.scale_lr multiplies train.lr by it, so the learning rate jumps from "
            "0.2 to 0.4; train.lr = 0.05 avoids it");
  EXPECT_EQ(warnings({"train.lr=0.1"}, more), Options{});
  EXPECT_EQ(warnings({"train.lr=0.1", "train.scale_lr=true"}, {"cluster.workers=4", "train.lr=0.05"}), Options{});
  EXPECT_EQ(warnings({"train.lr=0.1", "train.scale_lr=true"}, {"run.epochs=9"}), Options{});
  const auto warming = warnings({"train.lr=0.1", "train.warmup_epochs=5"}, more);
  ASSERT_EQ(warming.size(), 1U);
  EXPECT_NE(warming[0].find("the warm-up begins at train.lr divided by it, so the learning rate jumps from 0.05 to "
                            "0.025"),
            std::string::npos)
      << warming[0];
  EXPECT_EQ(warnings({"train.lr=0.1", "train.warmup_epochs=5", "train.warmup_from=10"}, more), Options{});
}

}  // namespace
}  // namespace troupe::experiment
