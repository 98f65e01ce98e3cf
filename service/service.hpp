/// `troupe serve`: the HTTP service over a directory of runs (docs/service.md). Thread rule: one thread starts and stops it; it has threads of
/// its own: one for connections, one each for the run store, looks at the directories, files, archives, running runs, jobs' requests, uploads and unpacking; one for forecasts when
/// one is asked for; JobRunner's; one per node.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "service/access/users.hpp"
#include "service/api/context.hpp"
#include "service/api/routes.hpp"
#include "service/http/server.hpp"

namespace troupe::service {

struct ServiceSetup {
  std::string directory;  // of the runs; made if it is missing
  transport::HostPort listen;
  std::vector<std::string> hosts{};  // further names of this service
  std::shared_ptr<SSL_CTX> tls{};    // null: no TLS
  Limits limits{};
  std::string version;
  Features features{};
  std::optional<JobOptions> jobs{};  // nothing: no jobs; its callbacks are the service's
  AskNode ask_node{};                // null: no nodes
  UploadLimits uploads{};
};

/// Whether the program was built with its pages.
[[nodiscard]] bool has_dashboard() noexcept;

class Service {
 public:
  /// Listens when it returns. Errors: from HttpServer::start() and RunStore::open().
  [[nodiscard]] static core::Result<std::unique_ptr<Service>> start(ServiceSetup setup,
                                                                    std::shared_ptr<const Users> users);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return server_->port(); }
  [[nodiscard]] const Router& router() const noexcept { return router_; }
  /// Ends all connections. Requests under way get no answer.
  void stop();

 private:
  Service(ServiceSetup setup, std::shared_ptr<const Users> users);
  [[nodiscard]] std::optional<std::chrono::milliseconds> watch_runs();
  core::Result<void> open_jobs();
  core::Result<void> open_nodes();
  core::Result<void> open_datasets();

  ServiceSetup setup_;
  Counters counters_;
  StoreAccess store_;
  SweepOverviews sweeps_;
  LiveRuns live_;
  JournalPlaces journals_;
  EventHub events_;
  Forecasts forecasts_;
  Context context_;
  Router router_;
  std::map<std::string, std::string>
      rows_;  // what was told last of each run, while someone listens; on the store's thread
  std::stop_source tidying_;
  SampleReader samples_;
  std::unique_ptr<DatasetRegistry> datasets_;
  std::unique_ptr<Uploads> uploads_;
  std::unique_ptr<JobRunner> runner_;
  std::unique_ptr<NodeRegistry> nodes_;
  std::unique_ptr<Worker> store_worker_, files_worker_, archives_worker_, live_worker_, jobs_worker_, uploads_worker_,
      unpacking_worker_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace troupe::service
