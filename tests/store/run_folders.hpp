/// Directories of runs, written by hand, for tests of the store.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "tests/folder.hpp"

namespace troupe::store {

inline std::string started_line(double position = 0) {
  return fmt::format(
      R"({{"kind":"started","t":0,"name":"n","strategy":"easgd","model":"lenet","dataset":"glyphs","workers":2,"servers":1,"epochs":3,"epoch_samples":100,"epoch_position":{}}})"
      "\n",
      position);
}
inline std::string epoch_line(int epoch, double accuracy) {
  return fmt::format(
      R"({{"kind":"epoch","t":1,"epoch":{0},"epochs":3,"steps":{1},"train":{{"loss":0.5,"accuracy":0.75,"images_per_s":1000}},"test":{{"loss":0.25,"accuracy":{2},"top5":null}},"lr":0.05,"train_s":{3}}})"
      "\n",
      epoch, epoch * 10, accuracy, epoch * 2.0);
}
inline std::string ended_line(std::string_view code = {}) {
  const auto error = code.empty() ? std::string("null") : fmt::format(R"({{"code":"{}","message":"it broke"}})", code);
  return fmt::format(R"({{"kind":"ended","t":9,"error":{},"steps":30,"samples":300,"wall_s":7.5,"stopped_by":null}})"
                     "\n",
                     error);
}
inline std::string summary_text(double accuracy) {
  return fmt::format(
      R"({{"run":"runs/x","strategy":"easgd","model":"lenet","dataset":"glyphs","workers":2,"epochs":3,"steps":30,"wall_s":7.5,"train":{{"loss":0.5,"images_per_s":1000.5}},"test":{{"loss":0.25,"accuracy":{},"top5":null}},"time":{{"compute_s":3.5}},"center_hash":"xxh3:00"}})"
      "\n",
      accuracy);
}
inline std::string config_text(std::string_view name, int seed = 1, double lr = 0.05, int tau = 4) {
  return fmt::format(
      "[run]\nname = \"{}\"\nseed = {}\ninit = \"\"\n[model]\nname = \"lenet\"\n[data]\nname = \"glyphs\"\nbatch = "
      "[64]\n"
      "[train]\nlr = {}\n[strategy]\nname = \"easgd\"\ntau = {}\n[cluster]\nworkers = 2\npinning = true\nslowdown = "
      "[1.0, 4.0]\n",
      name, seed, lr, tau);
}

/// A run that has reached its end, 2026-01-02 03:04:05 unless `directory` says another time.
inline void write_done(const tests::Folder& runs, const std::string& directory, double accuracy, int seed = 1,
                       double lr = 0.05) {
  const auto name = directory.substr(directory.rfind('/') + 1);
  runs.write(directory + "/config.toml", config_text(name.size() > 16 ? name.substr(16) : name, seed, lr));
  runs.write(directory + "/metrics.jsonl",
             started_line() + epoch_line(1, 0.5) + epoch_line(2, 0.6) + epoch_line(3, accuracy) + ended_line());
  runs.write(directory + "/summary.json", summary_text(accuracy));
}

/// As if the directory had not changed for a minute: a look then trusts its time.
inline void age(const tests::Folder& runs, const std::string& directory) {
  const std::filesystem::path path(runs.file(directory));
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(1));
}

}  // namespace troupe::store
