#include "tests/histories/generator.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>

#include "core/random.hpp"
#include "tests/histories/conduct.hpp"

namespace troupe::histories {

namespace {

constexpr std::array kStrategies{"bsp",       "easgd",  "eamsgd", "sync_easgd", "downpour", "ssp",
                                 "local_sgd", "diloco", "mixed",  "gossip",     "pairs"};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed, core::Purpose::test, 0) {}

  History history() {
    strategy_ = kStrategies[below(kStrategies.size())];
    history_.workers = 2 + below(3);
    servers_ = 1 + below(3);
    set("strategy.name", strategy_);
    draw_rule();
    draw_optimizer();
    draw_cluster();
    draw_run();
    draw_events();
    return history_;
  }

 private:
  std::uint32_t below(std::size_t bound) { return static_cast<std::uint32_t>(random_.below(bound)); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }
  std::string one_of(std::initializer_list<const char*> values) { return *(values.begin() + below(values.size())); }
  void set(const std::string& key, const std::string& value) { history_.settings.push_back(key + "=" + value); }
  void set_one(const std::string& key, std::initializer_list<const char*> values) { set(key, one_of(values)); }

  void draw_rule() {
    if (strategy_ == "bsp") draw_bsp();
    if (strategy_ == "easgd" || strategy_ == "eamsgd") draw_easgd();
    if (strategy_ == "sync_easgd") set_one("strategy.tau", {"2", "4"});
    if (strategy_ == "downpour") draw_downpour();
    if (strategy_ == "ssp") draw_ssp();
    if (strategy_ == "local_sgd" || strategy_ == "diloco") draw_rounds();
    if (strategy_ == "mixed") draw_mixed();
    if (strategy_ == "gossip") set_one("strategy.p", {"0.25", "0.6"});
    if (strategy_ == "pairs") set_one("strategy.tau", {"1", "4"});
  }
  void draw_bsp() {
    if (chance(40)) {
      set("strategy.backup", "1");
      least_workers_ = 2;
      return;
    }
    set_one("strategy.combine", {"gradients", "gradients", "updates", "weights"});
    averages_ = history_.setting("strategy.combine") == "weights" && chance(50);
    if (averages_) set("strategy.average_momentum", "true");
  }
  void draw_easgd() {
    set_one("strategy.alpha", {"0.3", "0.5"});
    set_one("strategy.tau", {"1", "4", "10"});
    set_one("strategy.overlap", {"off", "skip", "wait"});
  }
  void draw_downpour() {
    set_one("strategy.n_push", {"1", "2"});
    set_one("strategy.n_fetch", {"1", "3"});
    set_one("strategy.server_optimizer", {"none", "none", "momentum", "adam"});
    set_one("strategy.overlap", {"off", "skip"});
  }
  void draw_ssp() {
    set_one("strategy.s", {"0", "1", "3"});
    set_one("strategy.steps_per_clock", {"1", "2"});
    set_one("strategy.overlap", {"off", "wait"});
  }
  void draw_rounds() {
    set_one("strategy.tau", {"4", "8"});
    if (servers_ >= 2 && chance(50)) set("strategy.fragments", "2");
    if (chance(40)) set("strategy.delay", "1");
    if (!chance(40)) return;
    least_workers_ = 1 + below(history_.workers);
    set("strategy.quorum", std::to_string(least_workers_));
  }
  void draw_mixed() {
    set_one("strategy.inner", {"downpour", "easgd", "ssp"});
    if (chance(40)) set("strategy.ema", "0.9");
    if (history_.setting("strategy.inner") == "easgd") set("strategy.tau", "4");
  }

  /// Rates at which every strategy learns the drawn digits within some epochs, also after a loss.
  void draw_optimizer() {
    const auto kind = strategy_ == "eamsgd" ? "nesterov" : averages_ ? "momentum" : one_of({"sgd", "momentum", "adam"});
    set("model.activation", "relu");
    set("train.optimizer", kind);
    double rate = kind == "sgd" ? 0.15 : kind == "adam" ? 0.004 : 0.03;
    const bool sums = strategy_ == "downpour" || strategy_ == "ssp" || strategy_ == "mixed" || strategy_ == "diloco" ||
                      history_.setting("strategy.combine") == "updates";
    if (sums) rate /= 3;
    const auto server = history_.setting("strategy.server_optimizer");
    if (server == "momentum") rate = 0.006;
    if (server == "adam") rate = 0.001;
    set("train.lr", fmt::format("{:.5f}", rate));
  }

  void draw_cluster() {
    history_.nodes = chance(10) ? 1 : 2 + below(std::min(history_.workers, 3U) - 1);
    set("cluster.servers", std::to_string(servers_));
    set("cluster.synthetic_step_ms", std::to_string(4 + below(9)));
    set_one("exchange.endpoint", {"auto", "auto", "tcp", "shm"});
    history_.tls = chance(20);
    if (chance(10)) set("cluster.server_placement", "colocated");
    if (chance(10)) set("exchange.wire", "bf16");
    const auto conduct = conduct_of(history_);
    const bool shm = history_.setting("exchange.endpoint") == "shm";  // needs all nodes when the run begins
    if (conduct.newcomers && history_.nodes >= 2 && !shm && chance(25)) history_.late = 1;
  }

  void draw_run() {
    if (chance(30)) history_.epochs = 6 + below(5);
    set("run.seed", std::to_string(1 + below(1000)));
    set("run.checkpoint_every", chance(30)   ? fmt::format("{} steps", 15 + below(90))
                                : chance(15) ? "1 s"
                                : chance(15) ? "never"
                                             : fmt::format("{} epochs", 1 + below(2)));
    if (chance(35)) set("run.journal", fmt::format("{} KB", 24 + below(60)));
    if (chance(30)) set("data.train_samples", "1130");
  }

  // ---- events

  void draw_events() {
    for (std::uint32_t k = 0; k < history_.nodes; ++k) (k < history_.nodes - history_.late ? up_ : down_).insert(k);
    nodes_ = history_.nodes;
    const auto events = 1 + below(4);
    while (history_.events.size() < events) draw_event();
    if (history_.epochs == 0 || !chance(25)) return;
    Event last{.what = Doing::last};
    draw_resume(last);
    history_.events.push_back(last);
  }

  void draw_event() {
    Event event;
    event.after = 1 + below(60);
    const auto die = below(100);
    const bool over_nodes = nodes_ > 0;
    if (over_nodes && !down_.empty() && die < 35) {
      event.what = Doing::start;
      event.node = take(down_, up_);
    } else if (over_nodes && !up_.empty() && die < 55) {
      event.what = Doing::kill;
      event.node = take(up_, down_);
    } else if (over_nodes && !up_.empty() && die < 62) {
      event.what = Doing::freeze;
      event.node = any(up_);
    } else if (over_nodes && !up_.empty() && die < 67 && !silenced_) {
      silenced_ = true;
      event.what = Doing::silence;
      event.node = any(up_);
    } else if (die < 82) {
      event.what = Doing::interrupt;
      draw_resume(event);
    } else if (die < 91) {
      event.what = Doing::crash;
      draw_resume(event);
    } else {
      event.what = die < 96 ? Doing::evaluate : Doing::intrude;
    }
    history_.events.push_back(event);
    if (event.workers == 0 || !chance(15)) return;
    Event cut{.what = Doing::cut};  // of the resume that follows
    draw_resume(cut);
    history_.events.push_back(cut);
  }

  void draw_resume(Event& event) {
    event.nodes = chance(25) ? 0 : 1 + below(history_.nodes);
    event.workers = chance(60) ? history_.workers : 1 + below(4);
    event.workers = std::max({event.workers, event.nodes, least_workers_});
    nodes_ = event.nodes;
  }

  std::uint32_t any(const std::set<std::uint32_t>& from) { return *std::next(from.begin(), below(from.size())); }
  std::uint32_t take(std::set<std::uint32_t>& from, std::set<std::uint32_t>& to) {
    const auto node = any(from);
    from.erase(node);
    to.insert(node);
    return node;
  }

  core::Random random_;
  History history_;
  std::string strategy_;
  std::uint32_t servers_ = 1;
  std::uint32_t least_workers_ = 1;
  std::uint32_t nodes_ = 0;            // of the session
  std::set<std::uint32_t> up_, down_;  // as far as the events determine
  bool silenced_ = false;
  bool averages_ = false;  // momentum, too
};

}  // namespace

History generate(std::uint64_t seed) { return Draw(seed).history(); }

std::vector<std::uint64_t> telling_seeds(std::size_t count) {
  constexpr std::uint64_t kCandidates = 300;
  std::map<std::uint64_t, std::set<std::string>> kinds;  // by seed: its strategy and its kinds of events
  for (std::uint64_t seed = 1; seed <= kCandidates; ++seed) {
    const auto history = generate(seed);
    kinds[seed].insert(history.strategy());
    for (const auto& event : history.events) kinds[seed].insert(std::to_string(static_cast<int>(event.what)));
  }
  std::vector<std::uint64_t> seeds;
  std::set<std::string> seen;
  while (seeds.size() < count && !kinds.empty()) {
    const auto adds = [&seen](const auto& entry) {
      return std::ranges::count_if(entry.second, [&](const auto& kind) { return !seen.contains(kind); });
    };
    const auto most = std::ranges::max_element(kinds, {}, adds);  // the first of several
    seen.insert(most->second.begin(), most->second.end());
    seeds.push_back(most->first);
    kinds.erase(most);
  }
  return seeds;
}

}  // namespace troupe::histories
