// Events of a history: to the nodes, to the training process, and beside it.
#include <chrono>
#include <csignal>

#include <fmt/format.h>

#include "tests/histories/player.hpp"
#include "tests/wait.hpp"

namespace troupe::histories {

using nodes::count;
using nodes::Process;

namespace {

constexpr std::chrono::milliseconds kFreeze{1000};  // too short for an eviction

}  // namespace

void Player::do_events() {
  while (next_ < history_.events.size()) {
    const auto& event = history_.events[next_];
    if (!await_moment(event)) return;
    ++next_;
    act(event);
    if (gave_up_ || session_.interrupted || session_.crashed) return;
    progress_->look();
    mark_ = progress_->steps();
  }
  if (finite()) return;
  constexpr std::uint64_t kFew = 20;
  if (!await([this] { return progress_->steps() >= mark_ + kFew; })) return;
  say("SIGINT, as everything has happened");
  session_.interrupted = true;
  train_->signal(SIGINT);
}

void Player::act(const Event& event) {
  say(fmt::format("{} at step {} of the session", to_text(event), progress_->steps()));
  switch (event.what) {
    case Doing::kill:
      if (!runs(event.node)) return say("it does not run");
      nodes_[event.node].process->process().kill();
      return lose(event.node);
    case Doing::freeze: {
      if (!runs(event.node)) return say("it does not run");
      const auto& process = nodes_[event.node].process->process();
      process.signal(SIGSTOP);
      tests::let_pass(kFreeze);
      return process.signal(SIGCONT);
    }
    case Doing::silence: return silence(event.node);
    case Doing::start: return bring(event.node);
    case Doing::interrupt:
    case Doing::crash:
    case Doing::cut:
    case Doing::last: {
      const bool kill = event.what != Doing::interrupt;
      (kill ? session_.crashed : session_.interrupted) = true;
      how_.push_back({event.nodes, event.workers});
      return train_->signal(kill ? SIGKILL : SIGINT);
    }
    case Doing::evaluate: return look_beside({"eval", outcome_.run, "--json"}, 0);
    case Doing::intrude: {
      auto command = in_one_process();
      command.insert(command.begin(), {"train", "--resume", outcome_.run, "--quiet"});
      return look_beside(command, 75);
    }
  }
}

/// Records the loss of `node` if it is a member of the session.
void Player::lose(std::uint32_t node) {
  if (!members_.contains(node)) return;
  session_.lost = true;
  lost_.insert(node);
  harmed_.insert(node);
}

void Player::silence(std::uint32_t node) {
  if (!runs(node) || !members_.contains(node) || lost_.contains(node)) return say("it is no member");
  const auto sign = fmt::format("(node {}) is lost", name(node));
  const auto back = fmt::format("(node {}) joined as a new member", name(node));
  const auto before = count(train_->err(), sign), returns = count(train_->err(), back);
  lose(node);
  const auto& process = nodes_[node].process->process();
  process.signal(SIGSTOP);
  const bool noticed = await_said(sign, before + 1);
  process.signal(SIGCONT);
  if (noticed) await_newcomer(node, returns + 1);
}

void Player::bring(std::uint32_t node) {
  if (runs(node)) return say("it runs");
  const auto before = count(train_->err(), fmt::format("(node {}) joined as a new member", name(node)));
  start_node(node);
  if (members_.contains(node)) await_newcomer(node, before + 1);
}

/// A run that continues until all events are done admits the node. If the run may end earlier, the player does not wait.
void Player::await_newcomer(std::uint32_t node, std::size_t times) {
  if (!conduct_.newcomers || finite() || lost_.size() == members_.size() || !outcome_.wrong.empty()) return;
  if (await_said(fmt::format("(node {}) joined as a new member", name(node)), times)) lost_.erase(node);
}

/// A finite run may have ended before an intruder, which takes its time to start, has opened its directory.
bool Player::was_late(Process& intruder, int code) {
  return code == 78 && finite() && count(intruder.err(), "epochs are done; add") == 1 &&
         tests::eventually([this] { return over(); });
}

void Player::look_beside(const std::vector<std::string>& command, int code) {
  Process beside(nodes::program(command));
  if (const int ended = beside.wait(); ended != code && !was_late(beside, ended))
    wrong(fmt::format("`troupe {}` beside the run ends with exit code {}, not {}: {}", fmt::join(command, " "), ended,
                      code, beside.err()));
}

}  // namespace troupe::histories
