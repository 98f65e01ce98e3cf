#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "core/text/utc_text.hpp"
#include "service/access/gate.hpp"
#include "service/api/answers.hpp"
#include "service/api/routes.hpp"
#include "service/assets/embedded.hpp"
#include "store/database.hpp"

namespace troupe::service {
namespace {

constexpr int kCookieSeconds = 30 * 24 * 3600;

Response open_session(Context& context, const Request& request) {
  const auto body = request.json();
  if (!body) return failure(body.error());
  const auto token = body->value("token", Json());
  const auto user = token.is_string() ? context.users->find(token.get<std::string>(), std::chrono::steady_clock::now())
                                      : std::nullopt;
  if (!user) return failure(401, "token", "no token, or a wrong one: {\"token\": TOKEN}");
  auto response = answer({{"user", user->name}, {"role", name(user->role)}});
  response.headers.emplace_back(
      "Set-Cookie", fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/; Max-Age={}{}", kCookie,
                                token.get<std::string>(), kCookieSeconds, request.secure ? "; Secure" : ""));
  return response;
}

Response close_session(const Request& request) {
  auto response = answer_nothing();
  response.headers.emplace_back("Set-Cookie", fmt::format("{}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0{}",
                                                          kCookie, request.secure ? "; Secure" : ""));
  return response;
}

Response describe_server(const Context& context, const Request& request) {
  const auto slots = context.jobs.slots ? context.jobs.slots() : JobSlots{};
  return answer({{"version", context.version},
                 {"started", core::utc_text(context.started)},
                 {"directory", context.directory},
                 {"user", request.user},
                 {"role", name(request.role)},
                 {"slots", {{"total", slots.total}, {"running", slots.running}}},
                 {"upload_limit", context.upload_limits.bytes},
                 {"features",
                  {{"cuda", context.features.cuda},
                   {"mpi", context.features.mpi},
                   {"ucx", context.features.ucx},
                   {"web", context.features.web}}}});
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

double processor_seconds() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

class Metrics {
 public:
  void begin(const char* name, const char* type, const char* help) {
    text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  }
  template <class T>
  void value(const char* name, const std::string& labels, T value) {
    text_ += fmt::format("{}{} {}\n", name, labels, value);
  }
  template <class T>
  void one(const char* name, const char* type, const char* help, T number) {
    begin(name, type, help);
    value(name, {}, number);
  }
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  std::string text_;
};

/// Prometheus' text format, version 0.0.4.
Response show_metrics(Context& context, const Request&) {
  Metrics metrics;
  const auto& counters = *context.counters;
  metrics.begin("troupe_build_info", "gauge", "The program's version.");
  metrics.value("troupe_build_info", fmt::format("{{version=\"{}\"}}", context.version), 1);
  metrics.one("process_start_time_seconds", "gauge", "When the service began.",
              static_cast<std::int64_t>(context.started));
  metrics.one("process_cpu_seconds_total", "counter", "Seconds of processors.", processor_seconds());
  metrics.one("process_resident_memory_bytes", "gauge", "Memory.", resident_bytes());
  metrics.begin("troupe_http_responses_total", "counter", "Answers by status.");
  for (std::size_t status = 0; status < counters.answers.size(); ++status)
    if (const auto count = counters.answers.at(status).load(); count > 0)
      metrics.value("troupe_http_responses_total", fmt::format("{{code=\"{}\"}}", status), count);
  metrics.one("troupe_http_connections_total", "counter", "Connections.", counters.connections.load());
  metrics.one("troupe_http_connections_refused_total", "counter", "Connections that were too many.",
              counters.refused.load());
  metrics.one("troupe_http_connections", "gauge", "Open connections.", counters.open.load());
  metrics.one("troupe_event_streams", "gauge", "Open streams of events.", counters.streams.load());
  if (context.jobs.slots) {
    const auto slots = context.jobs.slots();
    metrics.one("troupe_job_slots", "gauge", "Jobs that may run at once.", slots.total);
    metrics.one("troupe_jobs_running", "gauge", "Jobs that run.", slots.running);
  }
  const auto store = context.store->fresh();
  if (!store) return failure(store.error());
  metrics.begin("troupe_runs", "gauge", "Runs by status.");
  store::Statement statuses((*store)->database(), "SELECT status, count(*) FROM runs GROUP BY status");
  while (statuses.next())
    metrics.value("troupe_runs", fmt::format("{{status=\"{}\"}}", statuses.text(0)), statuses.integer(1));
  if (const auto checked = (*store)->database().check(); !checked) return failure(checked.error());
  return answer_text(std::move(metrics).text(), "text/plain; version=0.0.4; charset=utf-8");
}

}  // namespace

void add_server_routes(Router& router, Context& context) {
  router.add({.method = Method::get, .pattern = "/healthz", .role = Role::none, .handler = [](const Request&) {
                return answer_text("ok\n");
              }});
  router.add({.method = Method::get,
              .pattern = "/metrics",
              .where = Where::store,
              .handler = [&context](const Request& request) { return show_metrics(context, request); }});
  router.add({.method = Method::post,
              .pattern = "/api/v1/session",
              .role = Role::none,
              .handler = [&context](const Request& request) { return open_session(context, request); }});
  router.add(
      {.method = Method::del, .pattern = "/api/v1/session", .role = Role::none, .handler = [](const Request& request) {
         return close_session(request);
       }});
  router.add({.method = Method::get,
              .pattern = "/api/v1/server",
              .where = Where::jobs,  // it waits for the jobs' mutex
              .handler = [&context](const Request& request) { return describe_server(context, request); }});
  router.add({.method = Method::get, .pattern = "/api/v1/openapi.json", .handler = [](const Request&) {
                return answer_text(std::string(embedded_openapi()), "application/json");
              }});
}

}  // namespace troupe::service
