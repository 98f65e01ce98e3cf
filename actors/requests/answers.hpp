/// The answers of several actors, in the sequence in which they come, for threads outside actors: the first error need not wait for an
/// actor that is still busy. One thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <caf/all.hpp>

#include "actors/requests/interruptible.hpp"

namespace troupe::actors {

/// Destroying it gives up the requests that are still open.
template <class Answer>
class Answers {
 public:
  struct Next {
    std::size_t request = 0;  // counted from 0, in the sequence of ask()
    Answer answer{};
    std::optional<caf::error> error{};  // in place of the answer
  };

  explicit Answers(caf::actor_system& system) : system_(system) {}
  ~Answers() {
    for (const auto& asker : askers_) caf::anon_send_exit(asker, caf::exit_reason::kill);
  }
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;

  /// The end of `member` is an error, too, whether or not it has begun to work on the request.
  template <class Member, class Deadline, class Order>
  void ask(const Member& member, const Deadline& deadline, const Order& order) {
    askers_.push_back(
        system_.spawn([state = state_, request = state_->add(), member, deadline, order](caf::event_based_actor* self) {
          // An actor that ends with an open promise does not answer.
          self->monitor(member);
          self->set_down_handler([=](const caf::down_msg& end) {
            state->take({request, {}, end.reason ? end.reason : caf::make_error(caf::sec::request_receiver_down)});
            self->quit();
          });
          self->request(member, deadline, order)
              .then(
                  [=](const Answer& answer) {
                    state->take({request, answer, {}});
                  },
                  [=](const caf::error& error) {
                    state->take({request, {}, error});
                  });
        }));
  }
  /// As above; the request ends with caf::sec::request_timeout if nothing moves for movement.silence.
  template <class Member, class Deadline, class Order>
  void ask(const Member& member, const Deadline& deadline, const Order& order, const Movement& movement) {
    ask(member, deadline, order);
    watches_.emplace_back([state = state_, request = askers_.size() - 1, movement](const std::stop_token& over) {
      watch_movement(movement, over, [&] { state->take({request, {}, caf::make_error(caf::sec::request_timeout)}); });
    });
  }
  /// Blocks until one more has answered. Nothing: all have, or `stop` was requested.
  [[nodiscard]] std::optional<Next> next(const std::stop_token& stop) { return state_->next(stop); }

 private:
  /// Shared with the askers, which may end later.
  class State {
   public:
    std::size_t add() {
      const std::lock_guard lock(mutex_);
      open_.push_back(1);
      ++left_;
      return open_.size() - 1;
    }
    void take(Next next) {
      const std::lock_guard lock(mutex_);
      if (!std::exchange(open_[next.request], char{0})) return;
      came_.push_back(std::move(next));
      changed_.notify_all();
    }
    std::optional<Next> next(const std::stop_token& stop) {
      std::unique_lock lock(mutex_);
      if (left_ == 0 || !changed_.wait(lock, stop, [&] { return !came_.empty(); })) return std::nullopt;
      --left_;
      auto next = std::move(came_.front());
      came_.pop_front();
      return next;
    }

   private:
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::vector<char> open_;  // by request: 1, or 0 when it has ended
    std::size_t left_ = 0;    // of those that next() has not returned
    std::deque<Next> came_;
  };

  caf::actor_system& system_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::vector<caf::actor> askers_;
  std::vector<std::jthread> watches_;
};

}  // namespace troupe::actors
