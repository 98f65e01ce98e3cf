#include "tests/guest/scripted.hpp"

#include <sys/wait.h>

#include <cerrno>
#include <filesystem>
#include <sstream>

namespace troupe::guest {

GuestProgram scripted(std::vector<std::string> words, const ScriptedOptions& options) {
  words.insert(words.begin(), TROUPE_SCRIPTED_GUEST);
  return {.command = std::move(words), .start = options.start, .silence = options.silence, .end = options.end};
}

ScriptedRun::ScriptedRun(const GuestProgram& program) : backend(make_backend(program)), said(backend->describe()) {
  if (!said) return;
  if (auto made = nn::Graph::of_program("program", said->introduction.tensors, said->introduction.statistics))
    graph = std::make_unique<nn::Graph>(std::move(*made));
}

core::Result<std::unique_ptr<nn::Replica>> ScriptedRun::worker(bool gradients, std::uint32_t number) const {
  return backend->compile(*graph, {.batch = 4, .worker = number, .workers = 2, .gradients = gradients});
}

core::Result<std::unique_ptr<nn::Replica>> ScriptedRun::evaluator() const {
  return backend->compile(*graph, {.batch = 4, .training = false});
}

nn::Batch batch_of(std::span<const std::int32_t> samples, std::uint64_t lease) {
  return {.images = {}, .labels = samples, .lease = lease, .count = static_cast<std::int64_t>(samples.size())};
}

std::vector<std::string> logged(const tests::Folder& folder, const std::string& name) {
  std::istringstream text(folder.read("log." + name));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

bool has_children() { return ::waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD; }

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

}  // namespace troupe::guest
