#include <charconv>

#include <fmt/format.h>

#include "service/api/answers.hpp"
#include "service/api/job_json.hpp"
#include "service/api/routes.hpp"
#include "service/jobs/job_runner.hpp"

namespace troupe::service {
namespace {

/// 0: it is no number, and so no job's.
std::int64_t job_id(const Request& request) {
  const auto& text = request.parameter("id");
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  return error == std::errc{} && end == text.data() + text.size() ? id : 0;
}

Response no_such_job(const Request& request) {
  return failure(404, "unknown", fmt::format("there is no job {}", request.parameter("id")));
}

/// An order that the job's state does not allow is a conflict, not a mistake in the request.
Response order_failure(const Request& request, const core::Error& error) {
  if (error.code == core::Errc::config) return no_such_job(request);
  if (error.code == core::Errc::usage) return failure(409, "usage", error.message);
  return failure(error);
}

Response order_answer(const Request& request, const core::Result<Job>& job) {
  return job ? answer(json_of(*job)) : order_failure(request, job.error());
}

/// The body of an order, which may be missing.
core::Result<Json> order_body(const Request& request) {
  if (request.body.empty()) return Json::object();
  return request.json();
}

Response list_jobs(JobRunner& runner) {
  const auto jobs = runner.list();
  if (!jobs) return failure(jobs.error());
  auto rows = Json::array();
  for (const auto& job : *jobs) rows.push_back(json_of(job));
  return answer(rows);
}

Response submit_job(JobRunner& runner, const Request& request) {
  const auto body = request.json();
  if (!body) return failure(body.error());
  const auto wanted = job_request(*body, request.user);
  if (!wanted) return failure(wanted.error());
  if (!wanted->problems.empty()) {
    auto errors = Json::array();
    for (const auto& problem : wanted->problems)
      errors.push_back(
          {{"key", problem.key.empty() ? Json(nullptr) : Json(problem.key)}, {"message", problem.message}});
    return answer({{"error", {{"code", "config"}, {"message", wanted->problems.front().message}}}, {"errors", errors}},
                  400);
  }
  const auto job = runner.submit(wanted->spec, wanted->start);
  return job ? answer(json_of(*job), 201) : failure(job.error());
}

Response show_job(JobRunner& runner, const Request& request) {
  const auto details = runner.details(job_id(request));
  if (!details) return failure(details.error());
  return *details ? answer(json_of(**details)) : no_such_job(request);
}

Response remove_job(JobRunner& runner, const Request& request) {
  const auto removed = runner.remove(job_id(request));
  return removed ? answer_nothing() : order_failure(request, removed.error());
}

Response stop_job(JobRunner& runner, const Request& request) {
  const auto body = order_body(request);
  if (!body) return failure(body.error());
  const auto checkpoint = body->value("checkpoint", Json(true));
  if (!checkpoint.is_boolean()) return failure(400, "usage", "checkpoint: it must be true or false");
  return order_answer(request, runner.stop(job_id(request), checkpoint.get<bool>()));
}

Response change_job(JobRunner& runner, const Request& request) {
  const auto body = request.json();
  if (!body) return failure(body.error());
  const auto priority = whole_number(body->value("priority", Json()));
  if (!priority) return failure(400, "usage", "priority: it must be a whole number of 64 bits");
  return order_answer(request, runner.set_priority(job_id(request), *priority));
}

Response read_job_log(JobRunner& runner, const Request& request) {
  constexpr std::int64_t kMostBytes = 1 << 20, kUsual = 65536, kLast = std::int64_t{1} << 53;
  const auto from = request.number("from", 0, 0, kLast);
  const auto limit = request.number("limit", kUsual, 1, kMostBytes);
  if (!from) return failure(from.error());
  if (!limit) return failure(limit.error());
  const auto id = job_id(request);
  const auto job = runner.find(id);
  if (!job) return failure(job.error());
  if (!*job) return no_such_job(request);
  auto part = runner.log(id, static_cast<std::uint64_t>(*from), static_cast<std::uint64_t>(*limit));
  if (!part) return failure(part.error());
  auto response = answer_text(std::move(part->text));
  response.headers.emplace_back("X-Next", std::to_string(part->next));
  return response;
}

}  // namespace

void add_job_routes(Router& router, Context& context) {
  const auto add = [&](Method method, const std::string& path, Role role,
                       Response (*handle)(JobRunner&, const Request&)) {
    router.add({.method = method,
                .pattern = "/api/v1/jobs" + path,
                .role = role,
                .where = Where::jobs,
                .handler = [&context, handle](const Request& request) {
                  if (context.runner == nullptr) return failure(503, "config", "this service has no jobs");
                  return handle(*context.runner, request);
                }});
  };
  add(Method::get, "", Role::read, [](JobRunner& runner, const Request&) { return list_jobs(runner); });
  add(Method::post, "", Role::run, submit_job);
  add(Method::get, "/{id}", Role::read, show_job);
  add(Method::del, "/{id}", Role::run, remove_job);
  add(Method::patch, "/{id}", Role::run, change_job);
  add(Method::post, "/{id}/stop", Role::run, stop_job);
  add(Method::get, "/{id}/log", Role::read, read_job_log);
  add(Method::post, "/{id}/start", Role::run,
      [](JobRunner& runner, const Request& request) { return order_answer(request, runner.start(job_id(request))); });
  add(Method::post, "/{id}/resume", Role::run,
      [](JobRunner& runner, const Request& request) { return order_answer(request, runner.resume(job_id(request))); });
  add(Method::post, "/{id}/checkpoint", Role::run, [](JobRunner& runner, const Request& request) {
    return order_answer(request, runner.checkpoint(job_id(request)));
  });
}

}  // namespace troupe::service
