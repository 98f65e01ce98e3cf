#include <sys/stat.h>

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "service/api/answers.hpp"
#include "service/api/routes.hpp"
#include "service/runs/zip.hpp"
#include "store/run_directory.hpp"

namespace troupe::service {
namespace {

constexpr std::chrono::minutes kLongest{10};

/// The name in the header's two forms (RFC 6266): for clients that know only ASCII, and whole.
std::string disposition(const std::string& name) {
  auto plain = name;
  std::ranges::replace_if(
      plain, [](char c) { return c < 0x20 || c == 0x7f || c == '"' || c == '\\'; }, '_');
  return fmt::format("attachment; filename=\"{}.zip\"; filename*=UTF-8''{}.zip", plain, percent_encoded(name));
}

Response export_run(const Context& context, const Request& request) {
  const auto& run = request.parameter("run");
  const auto directory = store::open_run_directory(context.directory, run);
  if (!directory && directory.error().code == core::Errc::config) return no_such_run(run);
  if (!directory) return failure(directory.error());
  const auto wanted = request.query_value("checkpoints").value_or("0");
  auto zip = zip_of_directory(directory->run.get(), directory->name, {.checkpoints = wanted == "1" || wanted == "true"},
                              request.stop);
  if (!zip) return failure(zip.error());
  struct stat status {};
  if (::fstat(zip->get(), &status) != 0) return failure(500, "io", "the archive cannot be read");
  Response response;
  response.type = "application/zip";
  response.headers.emplace_back("Content-Disposition", disposition(directory->name));
  response.file = std::make_shared<FileBody>(FileBody{std::move(*zip), static_cast<std::uint64_t>(status.st_size)});
  return response;
}

}  // namespace

void add_export_routes(Router& router, Context& context) {
  router.add({.method = Method::get,
              .pattern = "/api/v1/runs/{run}/export.zip",
              .where = Where::archives,
              .handler = [&context](const Request& request) { return export_run(context, request); },
              .answer_time = kLongest});
}

}  // namespace troupe::service
