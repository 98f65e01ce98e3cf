#include "tests/histories/player.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "tests/small_config.hpp"
#include "tests/transport/tcp/certificates.hpp"
#include "tests/wait.hpp"

namespace troupe::histories {

namespace fs = std::filesystem;
using nodes::count;
using nodes::Process;
using nodes::program;

namespace {

constexpr std::size_t kSessions = 20;
// Of a run that is interrupted after all events: enough epochs for the comparison.
constexpr std::uint32_t kLeastEpochs = 10;

security::TlsFiles certificates(const History& history) {
  return history.tls ? transport::testing::good_certificate() : security::TlsFiles{};
}

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

void set(std::vector<std::string>& command, const std::string& setting) { append(command, {"--set", setting}); }

std::string config_of(const History& history) {
  return tests::small_config(
      fmt::format("[run]\nepochs = {}\ntensorboard = false", history.epochs ? history.epochs : 100'000),
      "[cluster]\nsynthetic_step_ms = 8\n");
}

}  // namespace

Player::Player(const History& history, const tests::Folder& folder)
    : history_(history),
      folder_(folder),
      conduct_(conduct_of(history)),
      nodes_(history.nodes),
      workers_(history.workers),
      last_epoch_(history.epochs) {}

void Player::say(const std::string& what) { outcome_.log.push_back(what); }
void Player::wrong(const std::string& what) {
  say("WRONG: " + what);
  outcome_.wrong.push_back(what);
}

// ---- nodes

std::string Player::name(std::uint32_t k) const { return fmt::format("127.0.0.1:{}", nodes_[k].port); }
bool Player::runs(std::uint32_t k) { return nodes_[k].process && nodes_[k].process->process().runs(); }

void Player::start_node(std::uint32_t k) {
  auto& node = nodes_[k];
  if (node.process) node.said += node.process->log();
  nodes::NodeProcess::Options options;
  options.tls = certificates(history_);
  options.port = node.port;
  node.process = std::make_unique<nodes::NodeProcess>(options);
  if (!node.process->up()) return wrong(fmt::format("node {} does not come up: {}", k, node.process->log()));
  node.port = node.process->port();
}

std::uint32_t Player::nodes_up() {
  std::uint32_t up = 0;
  for (std::uint32_t k = 0; k < nodes_.size(); ++k) up += runs(k) ? 1 : 0;
  return up;
}

/// `nodes` running nodes; starts others if there are too few.
std::vector<std::uint32_t> Player::members_of(std::uint32_t nodes) {
  std::vector<std::uint32_t> list;
  for (std::uint32_t k = 0; k < nodes_.size() && list.size() < nodes; ++k)
    if (runs(k)) list.push_back(k);
  for (std::uint32_t k = 0; k < nodes_.size() && list.size() < nodes; ++k) {
    if (runs(k)) continue;
    say(fmt::format("node {} is started to resume on it", k));
    start_node(k);
    list.push_back(k);
  }
  std::ranges::sort(list);
  return list;
}

/// Waits until no node has a member of the run.
void Player::await_free() {
  std::vector<std::string> list;
  for (std::uint32_t k = 0; k < nodes_.size(); ++k)
    if (runs(k)) list.push_back(name(k));
  if (list.empty()) return;
  auto command = program({"nodes", fmt::format("{}", fmt::join(list, ",")), "--json"});
  append(command, nodes::tls_arguments(certificates(history_)));
  std::string said;
  const bool free = tests::eventually([&] {
    Process ask(command);
    const bool answered = ask.wait() == 0;
    said = ask.out() + ask.err();
    return answered && count(said, "\"members\":[]") == list.size();
  });
  if (!free) wrong("nodes are not free when the run is over: " + said);
}

/// Sends each node SIGTERM; it must end with exit code 0.
void Player::end_nodes() {
  for (std::uint32_t k = 0; k < nodes_.size(); ++k) {
    if (!runs(k)) continue;
    auto& process = nodes_[k].process->process();
    process.signal(SIGCONT);
    process.signal(SIGTERM);
    if (const int code = process.wait(); code != 0) wrong(fmt::format("node {} ends with exit code {}", k, code));
  }
}

// ---- sessions

std::vector<std::string> Player::first_command() {
  auto command = program({"train", folder_.write("config.toml", config_of(history_)), "--plain", "--json"});
  set(command, "run.dir=" + folder_.file("runs"));
  set(command, fmt::format("cluster.workers={}", history_.workers));
  for (const auto& setting : history_.settings) set(command, setting);
  if (nodes_.empty()) return command;
  std::vector<std::string> list;
  for (std::uint32_t k = 0; k < nodes_.size(); ++k) {
    start_node(k);
    list.push_back(name(k));
    members_.insert(k);
  }
  const auto there = history_.nodes - history_.late;
  for (auto k = there; k < history_.nodes; ++k) {  // its port is known now
    nodes_[k].process->process().kill();
    lost_.insert(k);
    harmed_.insert(k);
  }
  append(command, {"--nodes", fmt::format("{}", fmt::join(list, ","))});
  if (history_.late > 0) append(command, {"--min-nodes", std::to_string(there)});
  append(command, nodes::tls_arguments(certificates(history_)));
  return command;
}

std::vector<std::string> Player::in_one_process() {
  return {"--set", "exchange.endpoint=auto", "--set", "exchange.algorithm=auto", "--set", "exchange.wire=fp32"};
}

std::vector<std::string> Player::resume_command(const Resume& how) {
  auto command = program({"train", "--resume", outcome_.run, "--plain", "--json"});
  workers_ = how.workers;
  set(command, fmt::format("cluster.workers={}", how.workers));
  finishing_ |= history_.epochs == 0 && next_ >= history_.events.size();
  if (finishing_) {
    if (last_epoch_ == 0) last_epoch_ = std::max(progress_->epoch() + 2, kLeastEpochs);
    set(command, fmt::format("run.epochs={}", last_epoch_));
    set(command, "cluster.synthetic_step_ms=1");
  }
  if (how.nodes == 0) {
    append(command, in_one_process());
    return command;
  }
  std::vector<std::string> list;
  for (const auto k : members_of(how.nodes)) {
    list.push_back(name(k));
    members_.insert(k);
  }
  append(command, {"--nodes", fmt::format("{}", fmt::join(list, ","))});
  append(command, nodes::tls_arguments(certificates(history_)));
  return command;
}

Outcome Player::play() {
  auto command = first_command();
  for (std::size_t k = 0; outcome_.wrong.empty(); ++k) {
    session_ = {.nodes = static_cast<std::uint32_t>(members_.size()), .may_finish = finite()};
    session_.nodes_lost = static_cast<std::uint32_t>(lost_.size());
    run_session(command);
    if (!outcome_.wrong.empty() || !outcome_.summary.is_discarded()) break;
    if (k == kSessions) wrong(fmt::format("{} sessions have not ended the run", k));
    if (outcome_.run.empty()) wrong("no run has come about");
    if (!outcome_.wrong.empty()) break;
    const Resume same{std::clamp(nodes_up(), std::min(history_.nodes, 1U), workers_), workers_};
    const auto how = how_.empty() ? same : how_.back();
    how_.clear();
    members_.clear();
    lost_.clear();
    harmed_.clear();
    command = resume_command(how);
  }
  if (train_ && train_->runs()) train_->kill();
  if (outcome_.wrong.empty()) await_free();
  end_nodes();
  return std::move(outcome_);
}

/// The summary stays discarded unless the run has ended with exit code 0.
void Player::run_session(std::vector<std::string> command) {
  say(fmt::format("{} on {} nodes with {} workers", outcome_.run.empty() ? "begins" : "goes on", members_.size(),
                  workers_));
  if (train_) said_.push_back(train_->err());
  train_ = std::make_unique<Process>(std::move(command));
  mark_ = 0;
  sessions_begun_ = progress_ ? progress_->sessions() : 0;
  if (next_ < history_.events.size() && history_.events[next_].what == Doing::cut) cut();
  if (!session_.crashed && await_begin()) do_events();
  if (gave_up_) return train_->kill();
  const int code = train_->wait();
  if (progress_) progress_->look();
  say(fmt::format("ends with exit code {}", code));
  if (was_complete(code)) return read_summary();
  check_end(code);
  outcome_.summary =
      code == 0 ? nlohmann::json::parse(train_->out(), nullptr, false) : nlohmann::json::parse("", nullptr, false);
  if (code == 0 && outcome_.summary.is_discarded()) wrong("no summary is printed: " + train_->out());
  outcome_.lost |= session_.lost;
  outcome_.crashed |= code == -1 || code == 75;
}

/// The session before had ended the run when it was killed.
bool Player::was_complete(int code) {
  return code == 78 && outcome_.crashed && count(train_->err(), "epochs are done; add") == 1;
}

void Player::read_summary() {
  std::ifstream file(outcome_.run + "/summary.json");
  outcome_.summary = nlohmann::json::parse(file, nullptr, false);
  if (outcome_.summary.is_discarded()) wrong("the run is complete and has no summary.json");
}

void Player::check_end(int code) {
  if (session_.nodes > 0) session_.nodes_lost = static_cast<std::uint32_t>(lost_.size());
  const auto codes = exit_codes(conduct_, session_);
  if (!codes.contains(code)) wrong(fmt::format("exit code {}; allowed: {}", code, fmt::join(codes, ", ")));
  // An undisturbed node must not be reported lost.
  for (const auto k : members_) {
    if (!harmed_.contains(k) && count(train_->err(), fmt::format("(node {}) is lost", name(k))) > 0)
      wrong(fmt::format("node {} is called lost, and was well all the time", k));
  }
}

bool Player::over() {
  if (train_->runs()) return false;
  static_cast<void>(train_->err());
  return true;
}

bool Player::await_begin() {
  bool begun = false;
  const bool decided = tests::eventually([&] {
    const bool ended = over();
    if (outcome_.run.empty() && fs::exists(folder_.file("runs"))) {
      for (const auto& entry : fs::directory_iterator(folder_.file("runs"))) outcome_.run = entry.path();
    }
    if (!progress_ && !outcome_.run.empty() && fs::exists(outcome_.run + "/metrics.jsonl"))
      progress_ = std::make_unique<Progress>(outcome_.run);
    if (progress_) progress_->look();
    begun = progress_ && progress_->sessions() > sessions_begun_;
    if (begun || ended) return true;
    static_cast<void>(train_->err());
    return false;
  });
  if (decided) return begun;
  wrong("it does not begin");
  gave_up_ = true;
  return false;
}

void Player::cut() {
  if (outcome_.run.empty()) return;
  const auto files = [this] { return std::distance(fs::directory_iterator(outcome_.run), {}); };
  const auto before = files();
  while (!over() && files() <= before) std::this_thread::yield();
  act(history_.events[next_++]);
}

/// As documented in the header. Every step extends the deadline: slow progress is no hang.
bool Player::await(const std::function<bool()>& there) {
  bool ended = false;
  bool arrived = false;
  std::uint64_t before = 0;
  const auto something_happened = [&] {
    ended = over();
    progress_->look();
    arrived = !ended && there();
    if (ended || arrived || progress_->steps() > before) return true;
    static_cast<void>(train_->err());
    return false;
  };
  while (tests::eventually(something_happened)) {
    if (ended || arrived) return arrived;
    before = progress_->steps();
  }
  wrong(fmt::format("it hangs at step {} of the session", progress_->steps()));
  gave_up_ = true;
  return false;
}

bool Player::await_moment(const Event& event) {
  if (event.what == Doing::last && last_epoch_ > 0) return await([this] { return progress_->epoch() >= last_epoch_; });
  return await([this, steps = mark_ + event.after] { return progress_->steps() >= steps; });
}

bool Player::await_said(const std::string& sign, std::size_t times) {
  bool said = false;
  const bool decided = tests::eventually([&] {
    said = count(train_->err(), sign) >= times;
    return said || over();
  });
  if (decided) return said || count(train_->err(), sign) >= times;
  wrong(fmt::format("it never says \"{}\"", sign));
  gave_up_ = true;
  return false;
}

std::string Player::everything_said() {
  std::string text;
  for (std::size_t k = 0; k < said_.size(); ++k) text += fmt::format("--- session {}\n{}", k + 1, said_[k]);
  if (train_) text += fmt::format("--- session {}\n{}", said_.size() + 1, train_->err());
  for (std::uint32_t k = 0; k < nodes_.size(); ++k)
    text += fmt::format("--- node {} ({})\n{}{}", k, name(k), nodes_[k].said,
                        nodes_[k].process ? nodes_[k].process->log() : "");
  return text;
}

}  // namespace troupe::histories
