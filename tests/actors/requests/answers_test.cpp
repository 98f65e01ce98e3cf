#include "actors/requests/answers.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "actors/control/system.hpp"
#include "actors/requests/asking.hpp"
#include "tests/wait.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using Measurer = caf::typed_actor<caf::replies_to<AwaitEnd>::with<Measured>>;

class AnswersTest : public ::testing::Test {
 protected:
  /// It answers with this error, or never.
  Measurer measurer(const std::optional<std::string>& error) {
    measurers_.push_back(system_.spawn([error, taken = taken_](Measurer::pointer self) -> Measurer::behavior_type {
      return {[self, error, taken, open = std::vector<caf::typed_response_promise<Measured>>()](
                  const AwaitEnd&) mutable -> caf::result<Measured> {
        ++*taken;
        if (error) return Measured{.error = *error};
        open.push_back(self->make_response_promise<Measured>());
        return open.back();
      }};
    }));
    return measurers_.back();
  }
  /// Their open promises keep them, and the system waits for its actors.
  void TearDown() override {
    for (const auto& measurer : measurers_) caf::anon_send_exit(measurer, caf::exit_reason::kill);
    measurers_.clear();
  }

  SystemConfig config_;
  caf::actor_system system_{config_};
  std::vector<Measurer> measurers_;
  std::shared_ptr<std::atomic<int>> taken_ = std::make_shared<std::atomic<int>>(0);  // requests that measurers have got
  std::atomic<std::uint64_t> moves_ = 0;
};

TEST_F(AnswersTest, AnErrorDoesNotWaitForTheActorsAskedBefore) {
  Answers<Measured> answers(system_);
  answers.ask(measurer(std::nullopt), kNoDeadline, AwaitEnd{});
  answers.ask(measurer("no route"), kNoDeadline, AwaitEnd{});
  const auto first = answers.next({});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->request, 1U);
  EXPECT_FALSE(first->error);
  EXPECT_EQ(first->answer.error, "no route");
}

TEST_F(AnswersTest, AllComeOnceThenNone) {
  Answers<Measured> answers(system_);
  answers.ask(measurer("a"), kNoDeadline, AwaitEnd{});
  answers.ask(measurer("b"), 3600s, AwaitEnd{});
  answers.ask(measurer("c"), kNoDeadline, AwaitEnd{}, Movement{moves_, 3600s});
  std::vector<std::string> errors(3);
  for (int k = 0; k < 3; ++k) {
    const auto next = answers.next({});
    ASSERT_TRUE(next);
    errors.at(next->request) += next->answer.error;
  }
  EXPECT_EQ(errors, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_FALSE(answers.next({}));
}

TEST_F(AnswersTest, AnActorThatEndsOrIsSilentIsAnError) {
  Answers<Measured> answers(system_);
  const auto ending = measurer(std::nullopt);
  answers.ask(ending, kNoDeadline, AwaitEnd{});
  caf::anon_send_exit(ending, caf::exit_reason::kill);
  const auto ended = answers.next({});
  ASSERT_TRUE(ended && ended->error);
  answers.ask(measurer(std::nullopt), kNoDeadline, AwaitEnd{}, Movement{moves_, 10ms});
  const auto silent = answers.next({});
  ASSERT_TRUE(silent && silent->error);
  EXPECT_EQ(silent->request, 1U);
  EXPECT_EQ(*silent->error, caf::sec::request_timeout);
}

TEST_F(AnswersTest, AnActorThatEndsAtWorkIsAnErrorAndItsAnswerComesFirst) {
  Answers<Measured> answers(system_);
  const auto ending = measurer(std::nullopt);
  answers.ask(ending, kNoDeadline, AwaitEnd{});
  ASSERT_TRUE(tests::eventually([&] { return *taken_ == 1; }));
  caf::anon_send_exit(ending, caf::exit_reason::user_shutdown);
  const auto ended = answers.next({});
  ASSERT_TRUE(ended && ended->error);
  EXPECT_EQ(*ended->error, caf::exit_reason::user_shutdown);
  const auto answering = measurer("an answer");
  answers.ask(answering, kNoDeadline, AwaitEnd{});
  ASSERT_TRUE(tests::eventually([&] { return *taken_ == 2; }));
  caf::anon_send_exit(answering, caf::exit_reason::user_shutdown);
  const auto answered = answers.next({});
  ASSERT_TRUE(answered && !answered->error);
  EXPECT_EQ(answered->answer.error, "an answer");
}

TEST_F(AnswersTest, AStopEndsTheWait) {
  Answers<Measured> answers(system_);
  answers.ask(measurer(std::nullopt), kNoDeadline, AwaitEnd{});
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(answers.next(stop.get_token()));
}

}  // namespace
}  // namespace troupe::actors
