// Guests that misbehave: each is one error of one line that says what was wrong, and no process and no descriptor is left.
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "guest/backend.hpp"
#include "nn/program/own_process.hpp"
#include "tests/guest/scripted.hpp"

namespace troupe::guest {
namespace {

struct Case {
  std::string name;
  std::vector<std::string> words;
  core::Errc code;
  std::string says;
};
std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.name; }

void expect_error(const core::Error& error, const Case& expected) {
  EXPECT_EQ(core::name(error.code), core::name(expected.code)) << error.message;
  EXPECT_NE(error.message.find(expected.says), std::string::npos) << error.message;
  EXPECT_EQ(error.message.find('\n'), std::string::npos) << error.message;
}

class GuestFaults : public testing::TestWithParam<Case> {
 protected:
  GuestFaults() : descriptors_(open_descriptors()) {}
  ~GuestFaults() override {
    EXPECT_FALSE(has_children());
    EXPECT_EQ(open_descriptors(), descriptors_);
  }
  static void expect(const core::Error& error) { expect_error(error, GetParam()); }
  /// A short deadline for silence alone: a busy machine must not make silence of another fault.
  [[nodiscard]] static ScriptedOptions patience() {
    if (GetParam().says.find("silent") == std::string::npos) return {};
    return {.silence = std::chrono::duration<double>(0.1)};
  }
  std::size_t descriptors_;
};
std::string name_of_case(const testing::TestParamInfo<Case>& info) { return info.param.name; }

using enum core::Errc;

class GuestBeginnings : public GuestFaults {};

TEST_P(GuestBeginnings, AreOneError) {
  const ScriptedRun run(scripted(GetParam().words));
  ASSERT_FALSE(run.said);
  expect(run.said.error());
}

INSTANTIATE_TEST_SUITE_P(
    , GuestBeginnings,
    testing::Values(
        Case{"EndsAtOnce",
             {"fault=exit:3", "when=JOIN"},
             program,
             "the program has not called troupe.join; it ended with exit code 3"},
        Case{"SaysWhy", {"fault=say:no such file", "when=JOIN"}, program, "its last lines: no such file"},
        Case{"SaysWhyInOtherBytes", {"fault=say:\xff\x1b[2J", "when=JOIN"}, program, "its last lines: ??[2J"},
        Case{"Leaves", {"fault=exit:0", "when=HELLO"}, program, "; it ended with exit code 0"},
        Case{"AnotherFrameFirst", {"fault=as:READY", "when=HELLO"}, data, "the guest said READY before HELLO"},
        Case{"NoJson", {"fault=text:hello", "when=HELLO"}, data, "HELLO is not as the protocol says: no JSON object"},
        Case{"AnotherVersion",
             {"fault=text:{\"protocol\":2}", "when=HELLO"},
             data,
             "protocol 2, and this program speaks 1"},
        Case{"NoFrame", {"fault=raw:ffffffff0100000000", "when=HELLO"}, data, "HELLO of 4294967295 bytes"},
        Case{"NothingToTrain", {"tensors=[[\"none\",[0]]]"}, config, "it has no parameters to train"},
        Case{"TheSameNameTwice", {"tensors=[[\"w\",[2]],[\"w\",[2]]]"}, config, "two of its tensors are called \"w\""},
        Case{"NegativeExtents", {"tensors=[[\"w\",[-2]]]"}, config, "extents are 1 or more"},
        Case{"TooLarge", {"tensors=[[\"w\",[1048576,1048575]]]"}, out_of_memory, "of memory to share with a program"},
        Case{"FarTooLarge", {"tensors=[[\"w\",[4611686018427387904,4]]]"}, config, "at most 2^40"},
        Case{"FailsBeforeItIsReady",
             {"fault=failed:no CUDA", "when=READY"},
             program,
             "the program has failed: no CUDA; it ended with exit code 1; Traceback |   line 7"},
        Case{"IsKilled", {"fault=kill", "when=READY"}, peer_lost, "; it was killed by signal 9 (Killed)"},
        Case{"PlansNothing", {"samples=0"}, data, "run.batches(0, 4, 1)"},
        Case{"BatchAboveSamples", {"samples=3"}, data, "run.batches(3, 4, 1)"},
        Case{"NeverTrains", {"fault=exit:0", "when=PLAN"}, program, "; it ended with exit code 0"}),
    name_of_case);

// The deadline includes the start of the program, which may be slow on a busy machine. So it is long, and the cases wait at the same time.
TEST(GuestSilence, BeforeTheFirstBatchIsOneError) {
  const auto descriptors = open_descriptors();
  const Case cases[] = {
      {"NeverJoins", {"fault=hang", "when=JOIN"}, timeout, "has not called troupe.join for 10 s (model.start_s)"},
      {"SaysNothing", {"fault=hang", "when=HELLO"}, timeout, "the guest is silent for 10 s (model.start_s)"},
      {"HalfAHello", {"fault=half", "when=HELLO"}, timeout, "is silent"},
      {"NoPlan", {"fault=hang", "when=PLAN"}, timeout, "is silent for 10 s (model.start_s)"}};
  {
    std::vector<std::jthread> threads;
    for (const auto& one : cases)
      threads.emplace_back([&one] {
        const ScriptedRun run(scripted(one.words, {.start = std::chrono::seconds(10)}));
        if (run.said)
          ADD_FAILURE() << one;
        else
          expect_error(run.said.error(), one);
      });
  }
  EXPECT_FALSE(has_children());
  EXPECT_EQ(open_descriptors(), descriptors);
}

class GuestSteps : public GuestFaults {};

// Four buckets; the fault is the worker's, in its second step.
TEST_P(GuestSteps, EndInOneError) {
  auto words = GetParam().words;
  words.insert(words.begin(), {R"(tensors=[["a",[300000]],["b",[300000]]])", "who=workers"});
  const auto program = scripted(std::move(words), {.silence = patience().silence});
  const ScriptedRun run(program);
  ASSERT_TRUE(run.graph) << run.said.error().message;
  auto replica = run.worker(true);
  ASSERT_TRUE(replica) << replica.error().message;
  core::Error error{internal, "nothing"};
  try {
    for (std::uint64_t lease = 0; lease < 3; ++lease) {
      if (auto done = (*replica)->step(batch_of(kSamples, lease), {}); !done) {
        error = done.error();
        break;
      }
      (*replica)->apply({.lr = 1}, {});
      (void)(*replica)->parameters();
    }
  } catch (const core::KernelsFailed& failed) {
    error = failed.error();
  }
  expect(error);
}

INSTANTIATE_TEST_SUITE_P(
    , GuestSteps,
    testing::Values(
        Case{"IsKilled", {"fault=kill", "nth=2"}, io, "; it was killed by signal 9 (Killed)"},
        Case{"Ends", {"fault=exit:0", "nth=2"}, program, "; it ended with exit code 0"},
        Case{"EndsAsAShellWhoseProgramWasKilled", {"fault=exit:137", "nth=2"}, io, "; it ended with exit code 137"},
        Case{"LeavesAChildWithItsConnection", {"fault=orphan", "nth=2"}, program, "; it ended with exit code 5"},
        Case{"Closes", {"fault=close", "nth=2"}, io, "the guest has closed its connection"},
        Case{"Hangs", {"fault=hang", "nth=2"}, io, "the guest is silent for 0.1 s (model.silence_s)"},
        Case{"HalfAnAnswer", {"fault=half", "nth=2"}, io, "the guest is silent for 0.1 s (model.silence_s)"},
        Case{"Fails",
             {"fault=failed:nan\x1b in\nx", "nth=2"},
             program,
             "the program has failed: nan? in?x; it ended with exit code 1; Traceback"},
        Case{"FailsAndIsKilledByItsOwnEnd",
             {"fault=aborted:CUDA error", "nth=2"},
             program,
             "the program has failed: CUDA error; it was killed by signal 6 (Aborted); Traceback"},
        Case{"AnotherLease",
             {"fault=text:\x07\x07\x07\x07\x07\x07\x07\x07"
              "2345678a2345678b2345678c",
              "nth=2"},
             program,
             "has done lease 506381209866536711, and was given 1"},
        Case{"AShortDone", {"fault=text:short", "nth=2"}, program, "the guest's DONE has 5 bytes"},
        Case{"DoneTwice", {"fault=twice", "nth=2"}, program, "the guest said DONE where STEPPED was due"},
        Case{"AnotherAnswer", {"fault=as:SYNCED", "nth=2"}, program, "the guest said SYNCED where DONE was due"},
        Case{
            "NoFrame", {"fault=raw:000000000400ff00", "nth=2"}, program, "a frame of type 4 with second half-word 255"},
        Case{"AnUnknownFrame",
             {"fault=raw:000000000d000000", "nth=2"},
             program,
             "a frame of type 13 with second half-word 0"},
        Case{"AMissingBucket", {"fault=none", "when=BUCKET", "nth=4"}, program, "a step with 1 of 2 buckets"},
        Case{"TheSameBucketTwice", {"fault=twice", "when=BUCKET", "nth=3"}, program, "BUCKET is not number 1 of 2"},
        Case{"ABucketTooMany", {"fault=twice", "when=BUCKET", "nth=4"}, program, "BUCKET is not number 2 of 2"},
        Case{"ALongBucket", {"fault=text:longer", "when=BUCKET", "nth=3"}, program, "BUCKET is not number 0 of 2"},
        Case{"StepsAtNothing", {"fault=hang", "when=STEPPED", "nth=2"}, io, "is silent"},
        Case{"IsKilledWhileItSteps", {"fault=kill", "when=STEPPED", "nth=2"}, io, "killed by signal 9"},
        Case{"NeverSyncs", {"mirrors=1", "fault=hang", "when=SYNCED", "nth=2"}, io, "is silent"},
        Case{"SyncsWrongly",
             {"mirrors=1", "fault=as:DONE", "when=SYNCED", "nth=2"},
             program,
             "the guest said DONE where SYNCED was due"}),
    name_of_case);

class GuestEvaluations : public GuestFaults {};

TEST_P(GuestEvaluations, EndInOneError) {
  const ScriptedRun run(scripted(GetParam().words, {.silence = patience().silence}));
  ASSERT_TRUE(run.graph) << run.said.error().message;
  auto replica = run.evaluator();
  ASSERT_TRUE(replica);
  const auto found = (*replica)->evaluate(batch_of(kSamples, 0));
  ASSERT_FALSE(found);
  expect(found.error());
}

INSTANTIATE_TEST_SUITE_P(
    , GuestEvaluations,
    testing::Values(
        Case{"NeverComesToIt", {"fault=hang", "when=WAITS"}, io, "is silent"},
        Case{"EndsBadly", {"fault=exit:4", "when=WAITS"}, program, "; it ended with exit code 4"},
        Case{"FailsBefore", {"fault=failed:no test set", "when=WAITS"}, program, "the program has failed: no test set"},
        Case{"FailsWithin",
             {"fault=failed:no test set", "when=EVALUATED"},
             program,
             "the program has failed: no test set"},
        Case{"AnotherFrame", {"fault=as:DONE", "when=WAITS"}, program, "the guest said DONE where WAITS was due"},
        Case{"Hangs", {"fault=hang", "when=EVALUATED"}, io, "is silent for 0.1 s (model.silence_s)"},
        Case{"IsKilled", {"fault=kill", "when=EVALUATED"}, io, "killed by signal 9"}),
    name_of_case);

class GuestEnds : public GuestFaults {};

// Of a worker and of an evaluator.
TEST_P(GuestEnds, FailureAfterTheLastBatchIsOneErrorAndOneWarning) {
  std::mutex mutex;
  std::vector<std::string> lines;
  const auto on_line = [&](const std::string& line) {
    const std::scoped_lock lock(mutex);
    lines.push_back(line);
  };
  const bool stays = GetParam().says.find("went on") != std::string::npos;
  const auto program = scripted(GetParam().words, {.end = std::chrono::duration<double>(stays ? 0.2 : 120)});
  const auto backend = make_backend(program, on_line);
  const auto said = backend->describe();
  ASSERT_TRUE(said) << said.error().message;
  const auto graph = nn::Graph::of_program("program", said->introduction.tensors, said->introduction.statistics);
  ASSERT_TRUE(graph);
  for (const bool training : {false, true}) {
    auto replica = backend->compile(*graph, {.batch = 4, .training = training, .on_output = on_line});
    ASSERT_TRUE(replica) << replica.error().message;
    EXPECT_TRUE(training ? (*replica)->step(batch_of(kSamples, 0), {}).has_value()
                         : (*replica)->evaluate(batch_of(kSamples, 0)).has_value());
    auto* const process = nn::own_process_of(**replica);
    ASSERT_NE(process, nullptr);
    const auto ended = process->end(true);
    ASSERT_FALSE(ended);
    expect(ended.error());
    EXPECT_EQ(lines, std::vector{"warning: " + ended.error().message});
    EXPECT_TRUE(process->end(true));  // told once
    lines.clear();
  }
  EXPECT_EQ(lines, std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(
    , GuestEnds,
    testing::Values(Case{"Exits", {"fault=exit:3", "when=END"}, program, "its program ended with exit code 3 after"},
                    Case{"IsKilled", {"fault=kill", "when=END"}, program, "killed by signal 9 (Killed) after its last"},
                    Case{"Stays",
                         {"fault=hang", "when=END"},
                         program,
                         "its program went on for 0.2 s after its last batch, and was killed (model.silence_s)"}),
    name_of_case);

TEST(GuestHarmless, AProgramThatEndsWellIsNoError) {
  const ScriptedRun run(scripted({}));
  ASSERT_TRUE(run.graph);
  auto replica = run.worker(false);
  ASSERT_TRUE(replica);
  ASSERT_TRUE((*replica)->step(batch_of(kSamples, 0), {}));
  EXPECT_TRUE(nn::own_process_of(**replica)->end(true));
}

// Its script saves a model after the loop: one that is not trained, or is not the run's.
TEST(GuestHarmless, AProgramWithNothingToSaveIsEndedByAnExitCode) {
  for (const auto& [steps, in_order] : {std::pair{false, true}, {false, false}, {true, false}}) {
    const tests::Folder folder;
    const ScriptedRun run(scripted({"log=" + folder.file("log")}));
    ASSERT_TRUE(run.graph);
    for (const bool training : {true, false}) {
      auto replica = training ? run.worker(false) : run.evaluator();
      ASSERT_TRUE(replica);
      if (steps) {
        ASSERT_TRUE(training ? (*replica)->step(batch_of(kSamples, 0), {}).has_value()
                             : (*replica)->evaluate(batch_of(kSamples, 0)).has_value());
      }
      EXPECT_TRUE(nn::own_process_of(**replica)->end(in_order));
      EXPECT_EQ(logged(folder, training ? "0" : "evaluator").back(), "END 75 it needs nothing more of this program");
    }
  }
}

TEST(GuestHarmless, FramesMayComeInPieces) {
  const ScriptedRun run(scripted({"fault=bytewise", "when=DONE", "who=workers"}));
  ASSERT_TRUE(run.graph);
  auto replica = run.worker(false);
  ASSERT_TRUE(replica);
  EXPECT_TRUE((*replica)->step(batch_of(kSamples, 0), {}));
}

// The protocol has none from the guest: it is closed, and not kept.
TEST(GuestHarmless, ADescriptorFromTheGuestIsNotKept) {
  const ScriptedRun run(scripted({"fault=descriptor", "when=DONE", "who=workers"}));
  ASSERT_TRUE(run.graph);
  auto replica = run.worker(false);
  ASSERT_TRUE(replica);
  const auto before = open_descriptors();
  EXPECT_TRUE((*replica)->step(batch_of(kSamples, 0), {}));
  EXPECT_EQ(open_descriptors(), before);
}

TEST(GuestHarmless, EvaluationsThatAreNotNumbersAreNone) {
  for (const auto* text : {R"({"metrics": 7})", R"({"metrics": {"loss": null, "accuracy": "all", "samples": -5}})",
                           R"({"metrics": {"loss": 1e308, "accuracy": 1.00001, "samples": 1e308}})"}) {
    const ScriptedRun run(scripted({"when=EVALUATED", std::string("fault=text:") + text}));
    ASSERT_TRUE(run.graph);
    auto replica = run.evaluator();
    ASSERT_TRUE(replica);
    const auto found = (*replica)->evaluate(batch_of(kSamples, 0));
    ASSERT_TRUE(found) << text << found.error().message;
    EXPECT_EQ(found->top1 < 0, std::string_view(text).find("\"accuracy\": 1.00001") == std::string_view::npos) << text;
    EXPECT_LE(found->top1, found->samples) << text;
  }
}

// Percentages would be 100 %, whatever the model does.
TEST(GuestMetrics, SharesOutsideZeroToOneAreErrors) {
  for (const auto& [metrics, says] :
       {std::pair{R"({"accuracy": 83.4})",
                  "run.evaluate: \"accuracy\" is 83.4: it is a share of the samples, from 0 to 1 (divide percentages "
                  "by 100)"},
        std::pair{R"({"accuracy": 0.5, "top5": -1})",
                  "run.evaluate: \"top5\" is -1: it is a share of the samples, from 0 to 1"}}) {
    const ScriptedRun run(scripted({"when=EVALUATED", fmt::format("fault=text:{{\"metrics\": {}}}", metrics)}));
    ASSERT_TRUE(run.graph);
    auto replica = run.evaluator();
    ASSERT_TRUE(replica);
    const auto found = (*replica)->evaluate(batch_of(kSamples, 0));
    ASSERT_FALSE(found) << metrics;
    EXPECT_EQ(found.error().code, core::Errc::program);
    EXPECT_EQ(found.error().message, says);
  }
}

TEST(GuestMetrics, AnEvaluationWithoutMetricsIsAnError) {
  for (const auto* text : {"{}", "no JSON"}) {
    const ScriptedRun run(scripted({"when=EVALUATED", std::string("fault=text:") + text}));
    ASSERT_TRUE(run.graph);
    auto replica = run.evaluator();
    ASSERT_TRUE(replica);
    const auto found = (*replica)->evaluate(batch_of(kSamples, 0));
    ASSERT_FALSE(found) << text;
    EXPECT_NE(found.error().message.find("the guest's EVALUATED has no metrics"), std::string::npos);
  }
}

class GuestOfAnotherRun : public testing::TestWithParam<std::pair<std::string, std::string>> {};

// It must not go on as if its training were over: it may overwrite what it has saved.
TEST_P(GuestOfAnotherRun, IsRefusedAndTold) {
  const tests::Folder folder;
  const ScriptedRun run(scripted({R"(statistics=[["mean",[2]]])"}));
  ASSERT_TRUE(run.graph);
  const auto other =
      make_backend(scripted({R"(statistics=[["mean",[2]]])", GetParam().first, "log=" + folder.file("log")}));
  const auto replica = other->compile(*run.graph, {.batch = 4});
  ASSERT_FALSE(replica);
  EXPECT_EQ(replica.error().code, core::Errc::config);
  EXPECT_NE(replica.error().message.find(GetParam().second), std::string::npos) << replica.error().message;
  const auto lines = logged(folder, "0");
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back().rfind("END 78 it is another one than that of the run: ", 0), 0U) << lines.back();
}

INSTANTIATE_TEST_SUITE_P(, GuestOfAnotherRun,
                         testing::Values(std::pair{R"(tensors=[["w",[3]]])", "it has 1 parameters, and the run has 2"},
                                         std::pair{R"(tensors=[["w",[4]],["b",[]]])", "its parameter 0 is \"w\""},
                                         std::pair{R"(tensors=[["w",[3]],["c",[]]])",
                                                   "its parameter 1 is \"c\", and the run's is \"b\""},
                                         std::pair{R"(statistics=[])", "it has 0 running values, and the run has 1"},
                                         std::pair{R"(statistics=[["mean",[3]]])", "its running value 0 is \"mean\""},
                                         std::pair{R"(statistics=[["var",[2]]])",
                                                   "its running value 0 is \"var\", and the run's is \"mean\""}));

}  // namespace
}  // namespace troupe::guest
