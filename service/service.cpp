#include "service/service.hpp"

#include <ctime>
#include <utility>

#include "service/access/gate.hpp"
#include "service/access/origin.hpp"
#include "service/api/job_json.hpp"
#include "service/assets/embedded.hpp"
#include "service/jobs/service_folder.hpp"
#include "service/runs/run_rows.hpp"

namespace troupe::service {
namespace {

constexpr std::chrono::seconds kWatch{2};        // between looks at which runs have changed
constexpr std::chrono::milliseconds kSoon{200};  // after a look that goes on
constexpr std::int64_t kWatched = 200;           // the newest runs: only those change by themselves

constexpr std::chrono::milliseconds kTidy{2'000};  // between looks for files of removed data sets
constexpr std::size_t kMostArchives = 8;           // that wait

}  // namespace

bool has_dashboard() noexcept { return !embedded_dashboard().empty(); }

Service::Service(ServiceSetup setup, std::shared_ptr<const Users> users)
    : setup_(std::move(setup)),
      store_(setup_.directory),
      sweeps_(setup_.directory),
      live_(setup_.directory),
      forecasts_(setup_.directory) {
  context_ = {.directory = setup_.directory,
              .version = setup_.version,
              .started = std::time(nullptr),
              .features = setup_.features,
              .users = std::move(users),
              .store = &store_,
              .sweeps = &sweeps_,
              .live = &live_,
              .journals = &journals_,
              .events = &events_,
              .counters = &counters_,
              .forecasts = &forecasts_,
              .upload_limits = setup_.uploads,
              .samples = &samples_};
  add_routes(router_, context_);
}

Service::~Service() { stop(); }

core::Result<std::unique_ptr<Service>> Service::start(ServiceSetup setup, std::shared_ptr<const Users> users) {
  std::unique_ptr<Service> service(new Service(std::move(setup), std::move(users)));
  auto& made = *service;
  // Before any thread: whether the directory can be used is an error of the start.
  if (const auto store = made.store_.fresh(); !store) return tl::unexpected(store.error());
  if (auto opened = made.open_jobs().and_then([&made] { return made.open_nodes(); }).and_then([&made] {
        return made.open_datasets();
      });
      !opened)
    return tl::unexpected(std::move(opened.error()));
  made.store_worker_ = std::make_unique<Worker>([&made] { return made.watch_runs(); });
  made.jobs_worker_ = std::make_unique<Worker>();
  made.files_worker_ =
      std::make_unique<Worker>([&made] { return made.samples_.close_idle(std::chrono::steady_clock::now()); });
  made.archives_worker_ = std::make_unique<Worker>(nullptr, kMostArchives);
  made.uploads_worker_ = std::make_unique<Worker>();
  made.unpacking_worker_ = std::make_unique<Worker>([&made] {
    made.uploads_->tidy(made.tidying_.get_token());
    return kTidy;
  });
  made.live_worker_ = std::make_unique<Worker>([&made] { return made.live_.poll(); });
  auto server = HttpServer::start(
      {.listen = made.setup_.listen,
       .limits = made.setup_.limits,
       .tls = made.setup_.tls,
       .gate = make_gate(made.context_.users, hosts_of_service(made.setup_.listen.host, made.setup_.hosts)),
       .workers = {{Where::store, made.store_worker_.get()},
                   {Where::files, made.files_worker_.get()},
                   {Where::archives, made.archives_worker_.get()},
                   {Where::live, made.live_worker_.get()},
                   {Where::jobs, made.jobs_worker_.get()},
                   {Where::uploads, made.uploads_worker_.get()},
                   {Where::unpacking, made.unpacking_worker_.get()}}},
      made.router_, made.counters_);
  if (!server) return tl::unexpected(server.error());
  made.server_ = std::move(*server);
  return service;
}

void Service::stop() {
  if (server_) server_->stop();
  tidying_.request_stop();
  store_.stop();
  for (auto* worker : {store_worker_.get(), files_worker_.get(), archives_worker_.get(), live_worker_.get(),
                       jobs_worker_.get(), uploads_worker_.get(), unpacking_worker_.get()})
    if (worker != nullptr) worker->stop();
  forecasts_.stop();
}

core::Result<void> Service::open_jobs() {
  if (!setup_.jobs) return {};
  auto options = *setup_.jobs;
  options.on_change = [this](const Job& job) {
    store_.expire();  // it may have a run now, or its run may be over
    events_.publish("job", json_of(job).dump(-1, ' ', false, Json::error_handler_t::replace));
  };
  options.on_remove = [this](std::int64_t id) {
    events_.publish("job", Json{{"id", id}, {"state", "deleted"}}.dump());
  };
  auto runner = JobRunner::open(std::move(options));
  if (!runner) return tl::unexpected(std::move(runner.error()));
  runner_ = std::move(*runner);
  context_.runner = runner_.get();
  context_.jobs.job_of_run = [here = runner_.get()](const std::string& run) { return here->job_of_run(run); };
  context_.jobs.slots = [here = runner_.get()] {
    return JobSlots{static_cast<std::int64_t>(here->slots()), static_cast<std::int64_t>(here->running())};
  };
  return {};
}

core::Result<void> Service::open_nodes() {
  if (!setup_.ask_node) return {};
  auto folder = service_folder(setup_.directory);
  if (!folder) return tl::unexpected(std::move(folder.error()));
  static const core::SteadyClock clock;
  auto nodes =
      NodeRegistry::open({.file = *folder + "/nodes.json",
                          .ask = setup_.ask_node,
                          .clock = &clock,
                          .on_change = [this](const NodeRow& row) {
                            events_.publish("node", json_of(row).dump(-1, ' ', false, Json::error_handler_t::replace));
                          }});
  if (!nodes) return tl::unexpected(std::move(nodes.error()));
  nodes_ = std::move(*nodes);
  context_.nodes = nodes_.get();
  return {};
}

core::Result<void> Service::open_datasets() {
  auto folder = service_folder(setup_.directory);
  if (!folder) return tl::unexpected(std::move(folder.error()));
  auto registry = DatasetRegistry::open(*folder + "/datasets.json");
  if (!registry) return tl::unexpected(std::move(registry.error()));
  datasets_ = std::move(*registry);
  context_.datasets = datasets_.get();
  uploads_ = std::make_unique<Uploads>(*datasets_, setup_.uploads);
  context_.uploads = uploads_.get();
  return {};
}

/// The first look after someone has come tells all rows: what they were when that client last looked is not known here, and a run may have changed
/// since.
std::optional<std::chrono::milliseconds> Service::watch_runs() {
  if (!events_.listened_to()) {
    rows_.clear();
    return kWatch;
  }
  const auto store = store_.fresh();
  if (!store) return kWatch;
  if (store_.is_looking()) return kSoon;  // without keeping questions waiting
  store::ListQuery query;
  query.limit = kWatched;
  const auto rows = run_rows(context_.jobs, **store, query);
  if (!rows) return kWatch;
  std::map<std::string, std::string> now;
  for (const auto& row : rows->rows) {
    auto text = row.dump(-1, ' ', false, Json::error_handler_t::replace);
    const auto run = row["run"].is_string() ? row["run"].get<std::string>() : std::string();
    const auto before = rows_.find(run);
    if (before == rows_.end() || before->second != text) events_.publish("run", text);
    now[run] = std::move(text);
  }
  rows_ = std::move(now);
  return kWatch;
}

}  // namespace troupe::service
