#include "gpu/plans/engine_cache.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe::gpu {
namespace {

constexpr int kFormat = 2;  // 1: had engines for float32 that are as inexact as TF32

std::filesystem::path absolute_variable(const char* name) {
  const char* value = std::getenv(name);
  std::filesystem::path path = value ? value : "";
  return path.is_absolute() ? path : std::filesystem::path();
}

/// Letters, digits and dots; everything else is one '-'.
std::string file_name_of(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.';
    if (plain)
      name += c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  return name;
}

/// Writes all of `text` into a new file beside `target`, then renames it.
core::Result<void> replace_file(const std::filesystem::path& target, const std::string& text) {
  const std::string written = fmt::format("{}.{}", target.string(), ::getpid());
  const int file = ::open(written.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return tl::unexpected(core::from_errno(errno, "create", written));
  int failed = 0;
  for (std::size_t done = 0; done < text.size() && failed == 0;) {
    const auto n = ::write(file, text.data() + done, text.size() - done);
    if (n > 0)
      done += static_cast<std::size_t>(n);
    else if (errno != EINTR)
      failed = errno;
  }
  if (::close(file) != 0 && failed == 0) failed = errno;
  if (failed == 0 && ::rename(written.c_str(), target.c_str()) != 0) failed = errno;
  if (failed == 0) return {};
  (void)::unlink(written.c_str());
  return tl::unexpected(core::from_errno(failed, "write", target.string()));
}

}  // namespace

std::filesystem::path EngineCache::user_folder() {
  if (const auto cache = absolute_variable("XDG_CACHE_HOME"); !cache.empty()) return cache / "troupe";
  const auto home = absolute_variable("HOME");
  return home.empty() ? home : home / ".cache" / "troupe";
}

EngineCache::EngineCache(std::filesystem::path folder, const DeviceInfo& device)
    : folder_(std::move(folder)), device_(device.name), libraries_(device.libraries) {
  if (folder_.empty()) return;
  file_ = folder_ / fmt::format("engines-{}.json", file_name_of(fmt::format("{} {}", device_, libraries_)));
  choices_ = read();
}

EngineCache::Choices EngineCache::read() {
  std::ifstream stream(file_, std::ios::binary);
  if (!stream) return {};  // none yet, or not ours to read: measure
  const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  const auto ignored = [&](const char* why) {
    notes_.push_back(fmt::format("{}: {}; engines are measured again", file_.string(), why));
    return Choices{};
  };
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return ignored("is damaged");
  if (json.value("version", nlohmann::json()) != kFormat || json.value("device", nlohmann::json()) != device_ ||
      json.value("libraries", nlohmann::json()) != libraries_)
    return ignored("is of another device or version");
  const auto engines = json.find("engines");
  if (engines == json.end() || !engines->is_object()) return ignored("is damaged");
  Choices choices;
  for (const auto& [key, entry] : engines->items()) {
    const bool whole = entry.is_object() && entry.contains("engine") && entry["engine"].is_string() &&
                       entry.contains("seconds") && entry["seconds"].is_number();
    if (!whole) return ignored("is damaged");
    choices[key] = {entry["engine"].get<std::string>(), entry["seconds"].get<double>()};
  }
  return choices;
}

std::optional<EngineCache::Choice> EngineCache::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = choices_.find(key);
  return found == choices_.end() ? std::nullopt : std::optional(found->second);
}

void EngineCache::put(const std::string& key, Choice choice) {
  const std::lock_guard lock(mutex_);
  choices_[key] = choice;
  unsaved_[key] = std::move(choice);
}

core::Result<void> EngineCache::save() {
  const std::lock_guard lock(mutex_);
  if (file_.empty() || unsaved_.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return tl::unexpected(core::from_errno(error.value(), "create", folder_.string()));
  Choices all = read();  // another process may have added choices
  for (const auto& [key, choice] : unsaved_) all[key] = choice;
  nlohmann::json engines = nlohmann::json::object();
  for (const auto& [key, choice] : all) engines[key] = {{"engine", choice.engine}, {"seconds", choice.seconds}};
  const nlohmann::json json{{"version", kFormat}, {"device", device_}, {"libraries", libraries_}, {"engines", engines}};
  const auto replace = nlohmann::json::error_handler_t::replace;
  if (auto written = replace_file(file_, json.dump(1, ' ', false, replace) + '\n'); !written) return written;
  choices_.merge(all);
  unsaved_.clear();
  return {};
}

std::vector<std::string> EngineCache::notes() const {
  const std::lock_guard lock(mutex_);
  return notes_;
}

}  // namespace troupe::gpu
