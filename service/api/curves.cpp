#include <algorithm>
#include <cmath>
#include <map>

#include "service/api/answers.hpp"
#include "service/api/routes.hpp"
#include "service/runs/thinning.hpp"
#include "store/query/details.hpp"

namespace troupe::service {
namespace {

constexpr std::int64_t kFewest = 3, kMost = 100'000;

Response show_curves(Context& context, const Request& request) {
  const auto most = request.number("points", 2000, kFewest, kMost);
  if (!most) return failure(most.error());
  const auto wanted = query_list(request, "series");
  const auto run = open_run(context, request);
  if (!run) return run.error();
  const auto points = store::curves_of(run->store->database(), run->id);
  if (!points) return failure(points.error());
  const auto line = started_line(context.directory, run->path);
  const auto size = line.is_object() ? line.value("epoch_samples", Json()) : Json();
  const double epoch_samples = size.is_number() ? size.get<double>() : 0;
  std::map<std::string, std::vector<CurvePoint>> curves;
  for (const auto& point : *points)
    if (wanted.empty() || std::ranges::find(wanted, point.series) != wanted.end())
      curves[point.series].push_back(
          {point.epoch, point.seconds, std::round(point.epoch * epoch_samples), point.value});
  auto series = Json::object();
  for (const auto& [name, curve] : curves) series[name] = thinned(curve, static_cast<std::size_t>(*most));
  return answer({{"series", series}});
}

}  // namespace

void add_curve_routes(Router& router, Context& context) {
  router.add({.method = Method::get,
              .pattern = "/api/v1/runs/{run}/curves",
              .where = Where::store,
              .handler = [&context](const Request& request) { return show_curves(context, request); }});
}

}  // namespace troupe::service
