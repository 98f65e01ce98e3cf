/// What the handlers of all resources share. Its members outlive the server. Thread rule: each member says.
#pragma once

#include <ctime>
#include <memory>
#include <string>

#include "service/access/users.hpp"
#include "service/datasets/dataset_registry.hpp"
#include "service/datasets/sample_reader.hpp"
#include "service/datasets/uploads.hpp"
#include "service/events/hub.hpp"
#include "service/forecast/forecasts.hpp"
#include "service/http/server.hpp"
#include "service/jobs/job_runner.hpp"
#include "service/journal/journal_places.hpp"
#include "service/live/live_runs.hpp"
#include "service/nodes/node_registry.hpp"
#include "service/runs/job_facts.hpp"
#include "service/runs/store_access.hpp"
#include "service/runs/sweep_records.hpp"

namespace troupe::service {

/// What this program was built with.
struct Features {
  bool cuda = false, mpi = false, ucx = false, web = false;
};

struct Context {
  std::string directory;  // of the runs
  std::string version;
  std::time_t started = 0;
  Features features{};
  JobFacts jobs{};
  std::shared_ptr<const Users> users{};
  StoreAccess* store = nullptr;         // Where::store
  SweepOverviews* sweeps = nullptr;     // Where::store
  LiveRuns* live = nullptr;             // Where::live
  JournalPlaces* journals = nullptr;    // any thread
  EventHub* events = nullptr;           // any thread
  Counters* counters = nullptr;         // any thread
  Forecasts* forecasts = nullptr;       // any thread
  DatasetRegistry* datasets = nullptr;  // any thread
  Uploads* uploads = nullptr;           // any thread
  UploadLimits upload_limits{};
  SampleReader* samples = nullptr;  // Where::files
  JobRunner* runner = nullptr;      // any thread; null: no jobs
  NodeRegistry* nodes = nullptr;    // any thread; null: no nodes
};

}  // namespace troupe::service
