#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <semaphore>
#include <thread>

#include <fmt/format.h>

#include "apps/arguments/checks.hpp"
#include "apps/arguments/network.hpp"
#include "apps/command.hpp"
#include "apps/commands/serve/node_asker.hpp"
#include "apps/grid/pool/children.hpp"
#include "apps/interrupt.hpp"
#include "apps/output.hpp"
#include "core/open_files.hpp"
#include "gpu/device/load.hpp"
#include "service/http/browser_tls.hpp"
#include "service/jobs/service_folder.hpp"
#include "service/service.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::apps {
namespace {

struct ServeArguments {
  std::string listen = "127.0.0.1:8080";
  std::string directory = "runs";
  std::vector<std::string> hosts;
  int jobs = 1;
  std::uint64_t upload_limit = service::UploadLimits{}.bytes;
  std::string add_user, remove_user, role = "read";
  security::TlsFiles tls;
};

/// Opens `.service/users.json`; it may have no users yet.
core::Result<std::shared_ptr<service::Users>> open_users(const ServeArguments& arguments) {
  const auto folder = service::service_folder(arguments.directory);
  if (!folder) return tl::unexpected(folder.error());
  auto users = service::Users::open(*folder + "/users.json");
  if (!users) return tl::unexpected(users.error());
  return std::make_shared<service::Users>(std::move(*users));
}

core::Result<void> change_users(const ServeArguments& arguments) {
  const auto users = open_users(arguments);
  if (!users) return tl::unexpected(users.error());
  if (!arguments.remove_user.empty()) {
    if (auto removed = (*users)->remove(arguments.remove_user); !removed) return removed;
    if (auto printed = print(fmt::format("removed {}\n", arguments.remove_user)); !printed) return printed;
  }
  if (arguments.add_user.empty()) return {};
  const auto role = service::parse_role(arguments.role);
  if (!role) return tl::unexpected(role.error());
  const auto token = (*users)->add(arguments.add_user, *role);
  if (!token) return tl::unexpected(token.error());
  return print(fmt::format("{} {} (shown only now): {}\n", arguments.add_user, arguments.role, *token));
}

/// TLS where a flag asks for it, and wherever others than this host can connect.
core::Result<std::shared_ptr<SSL_CTX>> tls_of(const ServeArguments& arguments, const transport::HostPort& at) {
  const bool loopback = transport::is_loopback(at.host);
  if (loopback && arguments.tls.empty()) return std::shared_ptr<SSL_CTX>();
  auto files = find_tls(arguments.tls);
  if (!files) return tl::unexpected(files.error());
  if (files->empty())
    return core::fail(core::Errc::config,
                      fmt::format("--listen {}: other hosts can connect there, so it needs TLS: give --ca, --cert and "
                                  "--key (`troupe certs`), or listen on 127.0.0.1 behind a proxy",
                                  arguments.listen));
  return service::make_browser_tls(*files, std::time(nullptr));
}

service::Features features() {
  const auto has = [](std::string_view endpoint) { return transport::built_in_endpoints().absence(endpoint).empty(); };
  return {.cuda = gpu::has_module(), .mpi = has("mpi"), .ucx = has("ucx"), .web = service::has_dashboard()};
}

/// The certificates for nodes; without any, or where they cannot be found, only nodes on this host can be asked.
security::TlsFiles tls_files(const ServeArguments& arguments) {
  return find_tls(arguments.tls).value_or(security::TlsFiles{});
}

/// Tells of failures of the job queue on standard error. What fails is tried again soon: the same line comes once a minute at most.
std::function<void(const core::Error&)> job_error_teller() {
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes kPause{1};
  return [last = std::string(), told = Clock::time_point()](const core::Error& error) mutable {
    if (error.message == last && Clock::now() < told + kPause) return;
    last = error.message;
    told = Clock::now();
    tell(fmt::format("troupe: jobs: {}\n", error.message));
  };
}

std::string absolute(const std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error);
  return error ? path : whole.string();
}

core::Result<service::JobOptions> job_options(const ServeArguments& arguments) {
  auto self = grid::this_executable();
  if (!self) return tl::unexpected(std::move(self.error()));
  service::JobOptions options;
  options.paths = {.executable = *self, .run_directory = arguments.directory};
  if (const auto files = tls_files(arguments); !files.empty())
    // Absolute: what a job's command line shows can be repeated from elsewhere.
    options.paths.tls = {"--ca",  absolute(files.ca), "--cert", absolute(files.certificate),
                         "--key", absolute(files.key)};
  options.supervisor = {*self, "supervise"};
  options.slots = static_cast<std::size_t>(arguments.jobs);
  options.on_error = job_error_teller();
  return options;
}

/// Ends the process with exit code 0 unless it is destroyed in time: a request may be at work that takes no stop, such as the opening of a large data
/// set. Nothing is lost: what was accepted is stored, and jobs go on.
class EndInTime {
 public:
  EndInTime()
      : thread_([this] {
          if (!over_.try_acquire_for(Interrupt::kWindDown)) ::_exit(0);
        }) {}
  ~EndInTime() {
    over_.release();
    thread_.join();
  }
  EndInTime(const EndInTime&) = delete;
  EndInTime& operator=(const EndInTime&) = delete;

 private:
  std::binary_semaphore over_{0};
  std::thread thread_;
};

core::Result<void> run_serve(const ServeArguments& arguments) {
  if (!arguments.add_user.empty() || !arguments.remove_user.empty()) return change_users(arguments);
  auto at = transport::parse_host_port(arguments.listen);
  if (!at) return core::fail(core::Errc::config, "--listen: " + at.error().message);
  if (at->host == "localhost") at->host = "127.0.0.1";
  if (!transport::is_numeric(at->host))
    return core::fail(core::Errc::config,
                      fmt::format("--listen {}: give an IP address; names go to --host", arguments.listen));
  const auto tls = tls_of(arguments, *at);
  if (!tls) return tl::unexpected(tls.error());
  const auto users = open_users(arguments);
  if (!users) return tl::unexpected(users.error());
  const auto jobs = job_options(arguments);
  if (!jobs) return tl::unexpected(jobs.error());
  core::raise_open_files_limit();
  Interrupt interrupt;  // before any thread starts
  interrupt.nothing_to_save(true);
  auto service = service::Service::start({.directory = arguments.directory,
                                          .listen = *at,
                                          .hosts = arguments.hosts,
                                          .tls = *tls,
                                          .version = TROUPE_VERSION,
                                          .features = features(),
                                          .jobs = *jobs,
                                          .ask_node = node_asker(tls_files(arguments)),
                                          .uploads = {.bytes = arguments.upload_limit}},
                                         *users);
  if (!service) return tl::unexpected(service.error());
  const auto address =
      fmt::format("{}://{}:{}/", *tls ? "https" : "http", transport::bracketed(at->host), (*service)->port());
  auto text = fmt::format("serves {} on {}\n", arguments.directory, address);
  if ((*users)->empty()) {
    const auto token = (*users)->add("admin", service::Role::admin);
    if (!token) return tl::unexpected(token.error());
    text += fmt::format("log in (shown only now): {}#token={}\n", address, *token);
  }
  if (auto printed = print(text); !printed) return printed;
  std::binary_semaphore stopped(0);
  const std::stop_callback on_stop(interrupt.token(), [&] { stopped.release(); });
  interrupt.nothing_to_save(false);  // from here on EndInTime sees to the end
  stopped.acquire();
  const EndInTime in_time;
  service->reset();
  return {};
}

Action declare_serve(CLI::App& app) {
  const auto arguments = std::make_shared<ServeArguments>();
  app.add_option("--listen", arguments->listen,
                 "an IP address and a port; off loopback with certificates only; port 0: any that is free")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app.add_option("--dir", arguments->directory, "the directory that has the runs: run.dir")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_option("--jobs", arguments->jobs, "jobs at once; others wait (docs/service-jobs.md)")
      ->check(whole_between(1, 1024))
      ->capture_default_str();
  app.add_option("--upload-limit", arguments->upload_limit,
                 "bytes of a data set that is uploaded, such as 500MB; 0: none is taken (docs/service.md)")
      ->transform(CLI::Validator(CLI::AsSizeValue(false)).description(""))
      ->check(whole_between(0, 1e15))
      ->type_name("SIZE")
      ->default_str("4GB");
  app.add_option("--host", arguments->hosts,
                 "a further name under which browsers find the service, such as that of a proxy; may be given several "
                 "times")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_option("--add-user", arguments->add_user, "add a user, print the user's token and end")->type_name("NAME");
  app.add_option("--role", arguments->role,
                 "of the new user: read looks; run also submits, stops and deletes jobs and writes tags and notes; "
                 "admin also removes runs and adds and removes nodes and data sets")
      ->check(word_of({"read", "run", "admin"}))
      ->capture_default_str();
  app.add_option("--remove-user", arguments->remove_user, "remove a user and end: the token is not good any more")
      ->type_name("NAME");
  add_tls(app, arguments->tls);
  return [arguments] { return run_serve(*arguments); };
}

}  // namespace

Command serve() {
  return {
      .name = "serve",
      .summary = "show runs in a browser and over HTTP, live (docs/service.md)",
      .examples =
          "  troupe serve\n"
          "  troupe serve --listen 127.0.0.1:9000 --dir elsewhere/runs\n"
          "  troupe serve --add-user ann --role run\n"
          "  troupe serve --listen 10.0.0.11:8443 --host train.example.org --ca certs/ca.pem --cert certs/node1.pem "
          "--key certs/node1.key\n",
      .declare = declare_serve,
      .ranks = Ranks::none};
}

}  // namespace troupe::apps
