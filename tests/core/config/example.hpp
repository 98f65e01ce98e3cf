/// A small schema with every type of value and two scopes that share a key, for the tests of the configuration.
#pragma once

#include "core/config/config.hpp"

namespace troupe::core::example {

struct Run {
  std::string name = "run";
  std::int64_t seed = 1;
  bool verbose = false;
};

struct Model {
  std::string name;  // required
  Structure layers;
};

struct Train {
  double lr = 0.01;
  std::vector<double> momenta = {0.5, 0.9};
  std::vector<std::int64_t> batch = {64};
  std::vector<std::string> hosts;
};

struct Strategy {
  std::string name = "bsp";
};

struct Easgd {
  double alpha = 0.5;
  std::int64_t tau = 10;
};

struct Eamsgd {
  std::int64_t tau = 4;
};

inline const Table<Run>& run_table() {
  static const Table<Run> table{"run",
                                {{"name", &Run::name, not_empty(), "name of the run's directory"},
                                 {"seed", &Run::seed, at_least(0), "of all randomness"},
                                 {"verbose", &Run::verbose, anything(), "say more"}}};
  return table;
}

inline const Table<Model>& model_table() {
  static const Table<Model> table{"model",
                                  {{"name", &Model::name, not_empty(), "which model to train"},
                                   {"layers", &Model::layers, anything(), "the graph, layer by layer"}}};
  return table;
}

inline const Table<Train>& train_table() {
  static const Table<Train> table{"train",
                                  {{"lr", &Train::lr, above(0), "learning rate"},
                                   {"momenta", &Train::momenta, between(0, 1), "one per worker"},
                                   {"batch", &Train::batch, both(at_least(1), not_empty()), "per worker"},
                                   {"hosts", &Train::hosts, anything(), "where to run"}}};
  return table;
}

inline const Table<Strategy>& strategy_table() {
  static const Table<Strategy> table{
      "strategy", {{"name", &Strategy::name, one_of({"bsp", "easgd", "eamsgd"}), "how workers stay together"}}};
  return table;
}

inline const Table<Easgd>& easgd_table() {
  static const Table<Easgd> table{"strategy",
                                  {{"alpha", &Easgd::alpha, between(0, 1), "moving rate"},
                                   {"tau", &Easgd::tau, at_least(1), "local steps between exchanges"}}};
  return table;
}

inline const Table<Eamsgd>& eamsgd_table() {
  static const Table<Eamsgd> table{"strategy", {{"tau", &Eamsgd::tau, at_least(2), "local steps between exchanges"}}};
  return table;
}

inline const Schema& schema() {
  static const Schema schema = [] {
    Schema s;
    s.add(run_table());
    s.add(model_table());
    s.add(train_table());
    s.add(strategy_table());
    s.add(easgd_table(), "easgd");
    s.add(eamsgd_table(), "eamsgd");
    return s;
  }();
  return schema;
}

/// Parses `text` as the file "a.toml".
inline Result<Config> parse(std::string_view text, const std::vector<std::string>& overrides = {}) {
  return Config::parse(schema(), text, "a.toml", overrides);
}

/// The message of the error that `text` must give, or a description of the other outcome. Every error must be Errc::config.
inline std::string error_of(std::string_view text, const std::vector<std::string>& overrides = {}) {
  const auto config = parse(text, overrides);
  if (config) return "(accepted)";
  return config.error().code == Errc::config ? config.error().message : "(wrong code) " + config.error().message;
}

inline constexpr std::string_view kMinimal = "[model]\nname = \"lenet\"\n";

}  // namespace troupe::core::example
