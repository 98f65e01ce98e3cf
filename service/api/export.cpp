#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "service/api/answers.hpp"
#include "service/api/routes.hpp"
#include "service/runs/zip.hpp"
#include "store/run_directory.hpp"

namespace troupe::service {
namespace {

constexpr std::chrono::minutes kLongest{10};
constexpr int kMostArchives = 4;  // that exist at once: each takes as much disk as its run, until it is sent

/// One of the archives that exist.
class Counted {
 public:
  explicit Counted(std::shared_ptr<std::atomic<int>> count) : count_(std::move(count)) { ++*count_; }
  ~Counted() { --*count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  [[nodiscard]] bool is_one_too_many() const { return *count_ > kMostArchives; }

 private:
  std::shared_ptr<std::atomic<int>> count_;
};

struct CountedFile {
  FileBody file;
  std::shared_ptr<Counted> counted;
};

/// The name in the header's two forms (RFC 6266): for clients that know only ASCII, and whole.
std::string disposition(const std::string& name) {
  auto plain = name;
  std::ranges::replace_if(
      plain, [](char c) { return c < 0x20 || c == 0x7f || c == '"' || c == '\\'; }, '_');
  return fmt::format("attachment; filename=\"{}.zip\"; filename*=UTF-8''{}.zip", plain, percent_encoded(name));
}

Response export_run(const Context& context, const Request& request, const std::shared_ptr<std::atomic<int>>& archives) {
  const auto& run = request.parameter("run");
  const auto directory = store::open_run_directory(context.directory, run);
  if (!directory && directory.error().code == core::Errc::config) return no_such_run(run);
  if (!directory) return failure(directory.error());
  auto counted = std::make_shared<Counted>(archives);
  if (counted->is_one_too_many()) {
    auto busy = failure(503, "busy", "too many archives are being sent: try again later");
    busy.headers.emplace_back("Retry-After", "10");
    return busy;
  }
  const auto wanted = request.query_value("checkpoints").value_or("0");
  auto zip = zip_of_directory(directory->run.get(), directory->name, {.checkpoints = wanted == "1" || wanted == "true"},
                              request.stop);
  if (!zip) return failure(zip.error());
  struct stat status {};
  if (::fstat(zip->get(), &status) != 0) return failure(500, "io", "the archive cannot be read");
  Response response;
  response.type = "application/zip";
  response.headers.emplace_back("Content-Disposition", disposition(directory->name));
  const auto held = std::make_shared<CountedFile>(
      CountedFile{{std::move(*zip), static_cast<std::uint64_t>(status.st_size)}, std::move(counted)});
  response.file = std::shared_ptr<FileBody>(held, &held->file);
  return response;
}

}  // namespace

void add_export_routes(Router& router, Context& context) {
  router.add({.method = Method::get,
              .pattern = "/api/v1/runs/{run}/export.zip",
              .where = Where::archives,
              .handler = [&context, archives = std::make_shared<std::atomic<int>>(0)](
                             const Request& request) { return export_run(context, request, archives); },
              .answer_time = kLongest});
}

}  // namespace troupe::service
