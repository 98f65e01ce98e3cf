#include "service/jobs/job_command.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "core/config/config.hpp"
#include "core/text/shell_word.hpp"

namespace troupe::service {

std::string config_file_name(const JobSpec& spec) {
  if (spec.config.empty()) return {};
  // A grid's directory has the name of its file.
  return spec.kind == JobKind::grid ? spec.name + ".toml" : "config.toml";
}

std::vector<std::string> command_line(const Job& job, const JobFolder& folder, const JobPaths& paths) {
  std::vector<std::string> line{paths.executable, std::string(name(job.spec.kind))};
  const auto add = [&line](std::initializer_list<std::string> words) { line.insert(line.end(), words); };
  const auto file = config_file_name(job.spec);
  const bool launch = job.spec.kind == JobKind::launch;
  const bool resumes = job.resume && !job.run.empty() && job.spec.kind != JobKind::grid;
  if (resumes) {
    add({"--resume", paths.run_directory + "/" + job.run});
  } else {
    if (!file.empty() && launch) add({"--config"});
    if (!file.empty()) add({folder.path() + "/" + file});
    add({"--set", "run.dir=" + core::to_toml(core::Value{paths.run_directory})});
  }
  add({"--plain", "--json", "--directory-file", folder.directory_file(job.attempt)});
  if (!job.spec.nodes.empty()) {
    add({"--nodes", job.spec.nodes});
    line.insert(line.end(), paths.tls.begin(), paths.tls.end());
  }
  if (launch && !resumes && !job.spec.command.empty()) {
    add({"--"});
    line.insert(line.end(), job.spec.command.begin(), job.spec.command.end());
  }
  return line;
}

std::string shell_text(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + core::shell_word(word);
  return text;
}

std::string run_name(const std::string& directory, const std::string& run_directory) {
  std::error_code error;
  const auto whole = std::filesystem::weakly_canonical(directory, error);
  if (error || directory.empty()) return {};
  const auto root = std::filesystem::weakly_canonical(run_directory, error);
  if (error) return {};
  auto relative = whole.lexically_relative(root).string();
  return relative.starts_with("..") || relative == "." ? std::string() : relative;
}

}  // namespace troupe::service
