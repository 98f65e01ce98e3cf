#include "apps/top/top.hpp"

#include <cstdlib>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "apps/command.hpp"
#include "apps/commands/live/service_arguments.hpp"
#include "apps/commands/runs/store_arguments.hpp"
#include "apps/output.hpp"
#include "apps/top/full_screen.hpp"
#include "store/query/list.hpp"
#include "store/run_values.hpp"

namespace troupe::apps {
namespace {

struct TopArguments {
  std::string what, run;
  std::string directory = "runs";
  ServiceAccess access;
  bool once = false, json = false;
};

/// The newest run that runs in `directory`.
core::Result<std::string> newest_in(const std::string& directory) {
  auto store = open_store(directory);
  if (!store) return tl::unexpected(std::move(store.error()));
  auto conditions = store::parse_filter("status=running");
  if (!conditions) return tl::unexpected(std::move(conditions.error()));
  store::ListQuery query;
  query.conditions = std::move(*conditions);
  query.columns = {"run"};
  query.limit = 1;
  const auto found = store::list(store->database(), query);
  if (!found) return tl::unexpected(found.error());
  if (found->rows.empty())
    return core::fail(core::Errc::config, fmt::format("no run is running in {}: name one (`troupe runs list --dir {}`)",
                                                      directory, directory));
  return store::text_of(found->rows.front().front());
}

/// A run's directory, or its name in --dir.
core::Result<std::unique_ptr<LiveSource>> source_in_directory(const TopArguments& arguments) {
  namespace fs = std::filesystem;
  auto run = arguments.what;
  auto directory = arguments.directory;
  std::error_code ignored;
  if (run.empty()) {
    auto newest = newest_in(directory);
    if (!newest) return tl::unexpected(std::move(newest.error()));
    run = std::move(*newest);
  } else if (fs::is_directory(run, ignored)) {
    auto path = fs::absolute(run + "/.", ignored).lexically_normal().parent_path();
    directory = path.parent_path().string();
    run = path.filename().string();
  } else {
    auto store = open_store(directory);
    if (!store) return tl::unexpected(std::move(store.error()));
    auto found = find_run(store->database(), directory, run);
    if (!found) return tl::unexpected(std::move(found.error()));
    run = std::move(found->path);
  }
  return local_source(directory, run);
}

core::Result<std::unique_ptr<LiveSource>> source_of(const TopArguments& arguments) {
  if (!is_service_address(arguments.what)) {
    if (!arguments.run.empty())
      return core::fail(core::Errc::usage, "a second argument is the run of a service: the first one is no address");
    return source_in_directory(arguments);
  }
  auto address = service_address(arguments.what, arguments.access, ::getenv);
  if (!address) return tl::unexpected(std::move(address.error()));
  return service_source(std::move(*address), arguments.run);
}

core::Result<void> run_top(const TopArguments& arguments) {
  auto source = source_of(arguments);
  if (!source) return tl::unexpected(std::move(source.error()));
  if (!arguments.once && !arguments.json && has_screen()) return show_live(**source);
  const auto view = (*source)->once();
  if (!view) return tl::unexpected(view.error());
  if (arguments.json) {
    auto json = view->state;
    json["run"] = view->run;
    return print(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  }
  constexpr std::size_t kPipe = 120;
  const auto columns = terminal_columns().value_or(kPipe);
  std::string text;
  for (const auto& row : whole(*view, columns)) text += row.render(std::string::npos, false) + "\n";
  return print(text);
}

Action declare_top(CLI::App& app) {
  const auto arguments = std::make_shared<TopArguments>();
  app.add_option("RUN|URL", arguments->what,
                 "a run's directory or its name in --dir, or the address of a service; without it the newest run that "
                 "is running in --dir")
      ->type_name("RUN|URL");
  app.add_option("RUN", arguments->run, "a run of the service; without it the newest one that is running there")
      ->type_name("RUN");
  add_directory(app, arguments->directory);
  add_service_access(app, arguments->access);
  app.add_flag("--once", arguments->once, "print the state once, as lines; so it is where there is no terminal");
  app.add_flag("--json", arguments->json, "print the state once, as one line of JSON (docs/formats/service.md)");
  return [arguments] { return run_top(*arguments); };
}

}  // namespace

Command top() {
  return {.name = "top",
          .summary = "show a run live, on the whole terminal: workers, and who waits for whom (docs/top.md)",
          .examples =
              "  troupe top\n"
              "  troupe top runs/20260102-030405-mnist-easgd\n"
              "  troupe top https://train.example.org:8443 --token-file token --ca certs/ca.pem\n"
              "  troupe top http://127.0.0.1:8080 20260102-030405-mnist-easgd --once\n",
          .declare = declare_top};
}

}  // namespace troupe::apps
