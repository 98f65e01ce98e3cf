#include "apps/arguments/network.hpp"

#include <array>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text/shell_word.hpp"

namespace troupe::apps {
namespace {

struct FileSources {
  const char* flag;
  const char* variable;
  const char* file;  // in the user's folder
  std::string security::TlsFiles::*path;
};
constexpr std::array kFiles{FileSources{"--ca", "TROUPE_CA", "ca.pem", &security::TlsFiles::ca},
                            FileSources{"--cert", "TROUPE_CERT", "node.pem", &security::TlsFiles::certificate},
                            FileSources{"--key", "TROUPE_KEY", "node.key", &security::TlsFiles::key}};

std::string text_of(const char* value) { return value == nullptr ? "" : value; }

/// $XDG_CONFIG_HOME/troupe or ~/.config/troupe; empty: this process has no home. A relative path is ignored, as XDG has it.
std::string user_folder(const Variable& variable) {
  if (const auto base = text_of(variable("XDG_CONFIG_HOME")); base.starts_with('/')) return base + "/troupe";
  const auto home = text_of(variable("HOME"));
  return home.starts_with('/') ? home + "/.config/troupe" : "";
}

}  // namespace

void add_tls(CLI::App& app, security::TlsFiles& files) {
  app.add_option(
         "--ca", files.ca,
         "certificate of the cluster's authority (`troupe certs init`); required off loopback; or TROUPE_CA, or "
         "~/.config/troupe/ca.pem")
      ->type_name("FILE");
  app.add_option("--cert", files.certificate,
                 "certificate of this node (`troupe certs node`); or TROUPE_CERT, or ~/.config/troupe/node.pem")
      ->type_name("FILE");
  app.add_option("--key", files.key, "its key; or TROUPE_KEY, or ~/.config/troupe/node.key")->type_name("FILE");
}

std::string tls_flags(const security::TlsFiles& flags) {
  std::string text;
  for (const auto& file : kFiles)
    if (const auto& path = flags.*file.path; !path.empty())
      text += fmt::format(" {} {}", file.flag, core::shell_word(path));
  return text;
}

core::Result<security::TlsFiles> find_tls(const security::TlsFiles& flags, const Variable& variable) {
  const auto folder = user_folder(variable);
  auto files = flags;
  std::vector<std::string> found, missing;
  for (const auto& file : kFiles) {
    auto& path = files.*file.path;
    if (path.empty()) path = text_of(variable(file.variable));
    const auto own = folder.empty() ? "" : fmt::format("{}/{}", folder, file.file);
    std::error_code ignored;
    if (path.empty() && !own.empty() && std::filesystem::exists(own, ignored)) path = own;
    if (path.empty())
      missing.push_back(fmt::format("{} ({}{}{})", file.flag, file.variable, own.empty() ? "" : ", ", own));
    else
      found.push_back(path);
  }
  if (found.empty() || missing.empty()) return files;
  return core::fail(core::Errc::config,
                    fmt::format("TLS is set half-way: there is {}, and no {}: give all three files, or none",
                                fmt::join(found, " and "), fmt::join(missing, " and no ")));
}

}  // namespace troupe::apps
