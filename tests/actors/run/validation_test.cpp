// Whole runs with a validation split: what it decides, what it leaves on disk, and that a resumed or replayed run decides alike.
#include <fstream>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "actors/control/system.hpp"
#include "actors/coordinator/evaluator.hpp"
#include "experiment/evaluation.hpp"
#include "experiment/state/checkpoint.hpp"
#include "nn/checkpoint/checkpoint.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::tests {
namespace {

using Lines = std::vector<nlohmann::json>;

Lines lines_of(const SmallRun& run, const std::string& kind) {
  Lines lines;
  std::ifstream file(run.run_directory() / "metrics.jsonl");
  for (std::string text; std::getline(file, text);) {
    auto line = nlohmann::json::parse(text);
    if (line["kind"] == kind) lines.push_back(std::move(line));
  }
  return lines;
}

nlohmann::json written_summary(const SmallRun& run) {
  std::ifstream file(run.run_directory() / "summary.json");
  return nlohmann::json::parse(file);
}

TEST(ValidationSplit, DecidesAboutTheTargetAndIsReported) {
  SmallRun run(
      {"data.validation=\"0.25\"", "run.epochs=50", "run.target_accuracy=0.2", "run.evaluate_every=\"5 steps\""});
  const auto end = run.train();
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(end.summary.stopped_by, "target_accuracy");
  EXPECT_GE(end.summary.validation.accuracy, 0.2);
  EXPECT_GT(end.summary.time_to_target_s, 0);
  EXPECT_LE(end.summary.time_to_target_s, end.summary.wall_s);
  EXPECT_GE(end.summary.test_accuracy, 0);  // the last model is evaluated on the test split as well
  const auto evaluations = lines_of(run, "evaluation");
  ASSERT_FALSE(evaluations.empty());
  for (const auto& line : evaluations) EXPECT_EQ(line["split"], "validation");
  EXPECT_GE(evaluations.back()["accuracy"].get<double>(), 0.2);
  for (std::size_t k = 0; k + 2 < evaluations.size(); ++k) EXPECT_LT(evaluations[k]["accuracy"].get<double>(), 0.2);
  const auto summary = written_summary(run);
  EXPECT_EQ(summary["validation"]["accuracy"], end.summary.validation.accuracy);
  EXPECT_EQ(summary["time_to_target_s"], end.summary.time_to_target_s);
}

/// 900 of the 1,200 samples are trained, in 45 steps of 20; the others in none.
TEST(ValidationSplit, IsNotTrained) {
  SmallRun run({"data.validation=\"300\"", "run.epochs=2"});
  const auto end = run.train();
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(end.summary.samples, 2U * 920);  // 23 steps of two workers: the tail wraps around
  EXPECT_EQ(end.summary.validation.evaluations, 2U);
}

/// best.safetensors is the model of the best validation score: evaluated again it has the same loss.
TEST(ValidationSplit, TheBestModelIsKept) {
  SmallRun run({"data.validation=\"0.25\"", "run.epochs=4", "run.monitor=loss", "train.lr=1.5", "strategy.name=easgd",
                "strategy.tau=1"});
  const auto end = run.train();
  ASSERT_FALSE(end.failed) << end.error.message;
  const auto evaluations = lines_of(run, "evaluation");
  ASSERT_EQ(evaluations.size(), 4U);
  double best = std::numeric_limits<double>::infinity();
  for (const auto& line : evaluations) best = std::min(best, line["loss"].get<double>());
  EXPECT_EQ(end.summary.validation.best_loss, best);

  const auto settings = run.settings().value();
  const auto spec = experiment::build_run_spec(settings, true).value();
  const auto file = nn::load_checkpoint((run.run_directory() / "best.safetensors").string());
  ASSERT_TRUE(file) << file.error().message;
  const auto checkpoint = experiment::load(file->file, spec.graph);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  core::HostAllocator memory;
  const auto replica = backend().compile(*spec.graph, {.batch = 100, .arenas = &memory, .training = false}).value();
  const auto score =
      experiment::evaluate(*replica, *spec.source.validation, *checkpoint->vectors.at(""), checkpoint->statistics);
  ASSERT_TRUE(score);
  EXPECT_NEAR(score->loss, best, 1e-6);
}

TEST(ValidationSplit, PatienceEndsTheRun) {
  SmallRun run({"data.validation=\"0.25\"", "run.epochs=500", "run.patience=3", "run.evaluate_every=\"10 steps\"",
                "train.lr=0.5"});
  const auto end = run.train();
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(end.summary.stopped_by, "patience");
  EXPECT_LT(end.summary.epochs, 500U);
  const auto evaluations = lines_of(run, "evaluation");
  // The last three are not better than the best before.
  double best = 0;
  for (std::size_t k = 0; k + 3 < evaluations.size(); ++k)
    best = std::max(best, evaluations[k]["accuracy"].get<double>());
  EXPECT_EQ(end.summary.validation.best_accuracy, best);
  for (std::size_t k = evaluations.size() - 3; k < evaluations.size(); ++k)
    EXPECT_LE(evaluations[k]["accuracy"].get<double>(), best);
}

/// Decisions of a plateau schedule and of patience continue where they were: the counters are in the checkpoint.
TEST(ValidationSplit, AResumedRunDecidesAsIfNotInterrupted) {
  const std::vector<std::string> options{"data.validation=\"0.25\"",
                                         "train.lr_policy=plateau",
                                         "train.lr_patience=1",
                                         "train.lr_gamma=0.5",
                                         "train.lr=0.8",
                                         "run.monitor=loss"};
  auto all = options;
  all.emplace_back("run.epochs=8");
  SmallRun whole(all);
  const auto expected = whole.train();
  ASSERT_FALSE(expected.failed) << expected.error.message;
  const auto rates = [](const Lines& lines) {
    std::vector<double> values;
    for (const auto& line : lines) values.push_back(line["lr"]);
    return values;
  };
  const auto fallen = rates(lines_of(whole, "epoch"));
  ASSERT_LT(fallen.back(), 0.8) << "the schedule must have fallen for this test to test anything";
  all.back() = "run.epochs=1";
  SmallRun parts(all);
  ASSERT_FALSE(parts.train().failed);
  experiment::RunEnd end;
  for (int epochs = 2; epochs <= 8; ++epochs) {
    end = parts.resume({"run.epochs=" + std::to_string(epochs)});
    ASSERT_FALSE(end.failed) << end.error.message;
  }
  EXPECT_EQ(end.summary.center_hash, expected.summary.center_hash);
  EXPECT_EQ(rates(lines_of(parts, "epoch")), fallen);
  EXPECT_EQ(end.summary.validation.evaluations, expected.summary.validation.evaluations);
  EXPECT_EQ(end.summary.validation.best_loss, expected.summary.validation.best_loss);
}

/// An epoch without an evaluation does not count for the next one.
TEST(EvaluationPeriod, AnEpochsReportIsOfThisEpochAlone) {
  const auto last_epoch = [](const std::string& period) {
    SmallRun run({"run.epochs=3", "run.evaluate_every=\"" + period + "\""});
    const auto end = run.train();
    EXPECT_FALSE(end.failed) << end.error.message;
    const auto epochs = lines_of(run, "epoch");
    EXPECT_EQ(epochs.back()["epoch"], 3);
    EXPECT_EQ(epochs.back()["train"]["loss"], end.summary.train_loss);
    return std::pair(epochs.back()["train"]["loss"].get<double>(), epochs.back()["train"]["accuracy"].get<double>());
  };
  const auto each = last_epoch("1 epoch");
  for (const auto* period : {"2 epochs", "1000000 steps"}) {
    const auto rare = last_epoch(period);
    EXPECT_NEAR(rare.first, each.first, 1e-9) << period;  // sums of reports, in any order
    EXPECT_EQ(rare.second, each.second) << period;
  }
}

/// Evaluations come where they would have come, and so do their decisions.
TEST(EvaluationPeriod, AnInterruptedRunDecidesAsIfNotInterrupted) {
  const std::vector<std::string> options{
      "data.validation=\"0.25\"", "data.train_samples=400", "train.lr_policy=plateau",
      "train.lr_patience=1",      "train.lr_gamma=0.5",     "train.lr=0.8",
      "run.monitor=loss",         "run.epochs=4",           "run.evaluate_every=\"10 steps\""};
  const auto scores = [](const SmallRun& run) {
    Lines lines = lines_of(run, "evaluation");
    for (auto& line : lines)
      for (const auto* key : {"t", "train_s"}) line.erase(key);
    return lines;
  };
  SmallRun whole(options);
  const auto expected = whole.train();
  ASSERT_FALSE(expected.failed) << expected.error.message;
  ASSERT_LT(lines_of(whole, "evaluation").back()["lr"].get<double>(), 0.8) << "the schedule must have fallen";
  auto limited = options;
  limited.emplace_back("run.checkpoint_every=\"6 steps\"");
  limited.emplace_back("run.keep_checkpoints=100");
  SmallRun parts(limited);
  ASSERT_FALSE(parts.train().failed);
  // As if killed between two evaluations.
  std::uint64_t newest = 0;
  for (const auto& file : std::filesystem::directory_iterator(parts.run_directory() / "checkpoints")) {
    const auto name = file.path().filename().string();
    const auto digits = name.find_first_of("0123456789");
    if (digits == std::string::npos) continue;
    const auto step = std::stoull(name.substr(digits));
    step > 18 ? void(std::filesystem::remove(file)) : void(newest = std::max<std::uint64_t>(newest, step));
  }
  std::filesystem::remove(parts.run_directory() / "metrics.jsonl");
  const auto end = parts.resume();
  ASSERT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(end.summary.center_hash, expected.summary.center_hash);
  EXPECT_EQ(end.summary.validation.evaluations, expected.summary.validation.evaluations);
  auto after = scores(whole);
  std::erase_if(after, [&](const auto& line) { return line["steps"] <= newest; });
  EXPECT_EQ(scores(parts), after);
}

/// Synchronous training gives the same models, whenever they are evaluated: so the scores must be equal to the last bit.
TEST(EvaluationBeside, GivesTheBitsOfEvaluationAlone) {
  for (const std::string model : {"mlp", "lenet"}) {
    const std::vector<std::string> options{"data.validation=\"0.25\"", "run.epochs=3", "model.name=" + model,
                                           "data.train_samples=400", "run.evaluate_every=\"4 steps\""};
    const auto scores = [&](const std::string& how) {
      auto all = options;
      all.push_back("run.evaluation=" + how);
      SmallRun run(all);
      const auto end = run.train();
      EXPECT_FALSE(end.failed) << end.error.message;
      std::vector<nlohmann::json> lines;
      for (const auto* kind : {"evaluation", "epoch"})
        for (auto& line : lines_of(run, kind)) {
          for (const auto* key : {"t", "train_s", "train"}) line.erase(key);
          lines.push_back(line);
        }
      EXPECT_EQ(nn::load_checkpoint((run.run_directory() / "best.safetensors").string()).has_value(), true);
      return std::pair(lines, end.summary.center_hash);
    };
    const auto alone = scores("paused"), beside = scores("beside");
    EXPECT_GE(alone.first.size(), 7U);
    EXPECT_EQ(alone.first, beside.first) << model;
    EXPECT_EQ(alone.second, beside.second) << model;
  }
}

/// Decisions of an evaluation beside training reach a synchronous run at the same lease, whatever the machine's speed; and a resume.
TEST(EvaluationBeside, APlateauFallsAtTheSameLease) {
  const std::vector<std::string> options{"data.validation=\"0.25\"", "run.epochs=6",  "train.lr_policy=plateau",
                                         "train.lr_patience=1",      "train.lr=1e-6", "run.evaluation=beside",
                                         "train.lr_gamma=0.5"};
  SmallRun one(options), two(options);
  const auto first = one.train(), second = two.train();
  ASSERT_FALSE(first.failed) << first.error.message;
  EXPECT_EQ(first.summary.center_hash, second.summary.center_hash);
  EXPECT_LT(lines_of(one, "epoch").back()["lr"].get<double>(), 0.9e-6)  // too small to learn
      << "the rate must fall for this test to test anything";
  EXPECT_EQ(lines_of(one, "epoch").size(), 6U);
  Lines falls = lines_of(one, "note");
  std::erase_if(falls, [](const auto& line) {
    return line["text"].template get<std::string>().find("falls to") == std::string::npos;
  });
  ASSERT_FALSE(falls.empty());
  EXPECT_TRUE(falls.front()["text"].get<std::string>().ends_with("falls to 5e-07 when the next evaluation begins"))
      << falls.front();
}

/// A run that has ended does not wait for an evaluation.
TEST(EvaluationBeside, OneThatIsNotNeededAnyMoreEndsAfterItsBatch) {
  SmallRun run;
  const auto spec = experiment::build_run_spec(run.settings().value(), true).value();
  core::HostAllocator memory;
  actors::SystemConfig config;
  caf::actor_system system(config);
  const core::SteadyClock clock;
  std::stop_source over;
  const auto evaluator = system.spawn<caf::detached>(
      actors::evaluator, actors::EvaluatorSetup{.graph = spec.graph,
                                                .backend = &backend(),
                                                .compile = experiment::evaluation_options(spec, 1, memory),
                                                .test = spec.source.test,
                                                .validation = nullptr,
                                                .clock = &clock,
                                                .stop = over.get_token()});
  over.request_stop();
  const auto model = std::make_shared<std::vector<float>>(static_cast<std::size_t>(spec.graph->parameter_count()));
  caf::scoped_actor self(system);
  self->request(evaluator, caf::infinite, actors::EvaluateOrder{}, actors::BorrowedView{core::Span{*model}, model},
                actors::BorrowedView{})
      .receive(
          [](const actors::Evaluated& evaluated) {
            EXPECT_EQ(evaluated.code, core::Errc::interrupted);
            EXPECT_EQ(evaluated.test.samples, 0);
          },
          [](const caf::error&) { ADD_FAILURE(); });
  self->send(evaluator, actors::Halt{});
}

}  // namespace
}  // namespace troupe::tests
