#include "apps/arguments/directory_file.hpp"

#include <array>
#include <filesystem>
#include <span>

#include <fmt/format.h>

#include "apps/output.hpp"
#include "nn/checkpoint/file_system.hpp"

namespace troupe::apps {

void add_directory_file(CLI::App& app, std::string& file) {
  app.add_option("--directory-file", file,
                 "write the path of the run's or the grid's directory into this file, as soon as it is known")
      ->type_name("FILE");
}

void write_directory_file(const std::string& file, const std::string& directory) {
  if (file.empty()) return;
  const std::filesystem::path path(file);
  std::error_code error;
  const auto line = std::filesystem::absolute(directory, error).string() + "\n";
  const auto folder = path.has_parent_path() ? path.parent_path().string() : std::string(".");
  const std::array parts{std::as_bytes(std::span(line))};
  const auto written = nn::replace_file(nn::system_files(), folder, path.filename().string(), parts);
  if (!written) tell(fmt::format("warning: --directory-file: {}\n", written.error().message));
}

}  // namespace troupe::apps
