#include "apps/watch/watch.hpp"

#include <cstdlib>
#include <memory>

#include "apps/arguments/checks.hpp"
#include "apps/command.hpp"
#include "apps/commands/live/service_arguments.hpp"
#include "apps/interrupt.hpp"
#include "apps/output.hpp"

namespace troupe::apps {
namespace {

struct WatchArguments {
  std::string url, run;
  ServiceAccess access;
  bool only_new = false, json = false;
  std::int64_t patience = 600;
};

core::Result<void> run_watch(const WatchArguments& arguments) {
  if (arguments.only_new && arguments.run.empty())
    return core::fail(core::Errc::usage, "--new is for a run: of a service only what is new is shown");
  auto address = service_address(arguments.url, arguments.access, ::getenv);
  if (!address) return tl::unexpected(std::move(address.error()));
  Interrupt interrupt;  // before any thread starts
  interrupt.nothing_to_save(true);
  const WatchOptions options{.address = std::move(*address),
                             .json = arguments.json,
                             .only_new = arguments.only_new,
                             .patience = std::chrono::seconds(arguments.patience),
                             .tell = [](std::string_view text) { tell(text); }};
  return arguments.run.empty() ? watch_service(options, interrupt.token())
                               : watch_run(options, arguments.run, interrupt.token());
}

Action declare_watch(CLI::App& app) {
  const auto arguments = std::make_shared<WatchArguments>();
  app.add_option("URL", arguments->url, "the address of a service, such as http://127.0.0.1:8080")
      ->type_name("URL")
      ->required();
  app.add_option("RUN", arguments->run, "a run of the service: its lines as `troupe train` prints them, until it ends")
      ->type_name("RUN");
  add_service_access(app, arguments->access);
  app.add_flag("--new", arguments->only_new, "of a run: not what it has written before");
  app.add_option("--patience", arguments->patience, "seconds without a connection until it gives up; 0: never")
      ->check(whole_between(0, 1e9))
      ->capture_default_str();
  app.add_flag("--json", arguments->json, "lines of JSON");
  return [arguments] { return run_watch(*arguments); };
}

}  // namespace

Command watch() {
  return {.name = "watch",
          .summary = "print what happens in a service, or in one of its runs, line by line (docs/top.md)",
          .examples =
              "  troupe watch http://127.0.0.1:8080 --token-file token\n"
              "  troupe watch https://train.example.org:8443 20260102-030405-mnist-easgd --ca certs/ca.pem\n"
              "  troupe watch http://127.0.0.1:8080 20260102-030405-mnist-easgd --json\n",
          .declare = declare_watch};
}

}  // namespace troupe::apps
